//! Rules of definitions and of objects, as upstream validates them.

use portico_cel::Meter;
use portico_machinery::Object;
use serde_json::{Value, json};

use super::*;
use crate::structural::Structural;
use crate::structural::definition::Requirements;

fn definition_errors(schema: &Value) -> Vec<String> {
    let errors = definition::validate(
        schema,
        &Path::new("s"),
        &[],
        &Requirements::NEW_DEFINITION,
        &EvaluationContext::new(&|| false),
    );
    errors.iter().map(ToString::to_string).collect()
}

fn rule_results(schema: &Value, new: &Value, old: Option<&Value>) -> (Vec<String>, Vec<String>) {
    rule_results_until(&|| false, schema, new, old)
}

fn rule_results_until(
    interrupted: &dyn Fn() -> bool,
    schema: &Value,
    new: &Value,
    old: Option<&Value>,
) -> (Vec<String>, Vec<String>) {
    let structural = Structural::compile(schema).unwrap();
    let tree = RuleTree::compile(structural.root(), true, &Meter::of_compilation()).unwrap();
    let object = |value: &Value| Object::from_json(value.to_string().as_bytes()).unwrap();
    let (new, old) = (object(new), old.map(object));
    let validated = validate(&tree, new.map(), old.as_ref().map(Object::map), interrupted);
    (validated.errors.iter().map(ToString::to_string).collect(), validated.warnings)
}

/// Returns an object schema with this schema for `spec`.
fn with_spec(spec: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": spec}})
}

#[test]
fn an_interruption_ends_the_evaluation_of_all_further_rules() {
    let rule = json!({"rule": "self.size() > 0", "message": "not evaluated"});
    let schema = with_spec(&json!({"type": "string", "x-kubernetes-validations": [rule, rule]}));
    let (new, checks) = (json!({"spec": ""}), std::cell::Cell::new(0));
    let interrupted = || {
        checks.set(checks.get() + 1);
        true
    };
    let (errors, _) = rule_results_until(&interrupted, &schema, &new, None);
    assert_eq!(errors, ["spec: Invalid value: \"string\": operation interrupted"]);
    assert_eq!(checks.get(), 1);
    assert_eq!(rule_results(&schema, &new, None).0.len(), 2);
}

#[test]
fn rules_of_an_object_share_a_step_allowance() {
    let cost_of = |rule: &str, length: usize, count: usize| {
        let value = json!("a".repeat(length));
        let rules = vec![json!({"rule": rule}); count];
        let schema = json!({"type": "string", "x-kubernetes-validations": rules});
        let context = EvaluationContext::new(&|| false);
        let structural = Structural::compile(&schema).unwrap();
        let tree = RuleTree::compile(structural.root(), true, &context.compilation).unwrap();
        let (found, left) =
            walk::evaluate_value(&tree, (&value, None), &Path::new("s"), MAX_PER_OBJECT, &context);
        assert!(found.errors.is_empty(), "{:?}", found.errors);
        MAX_PER_OBJECT - left
    };
    let (hashing, ordinary) = ("!(self in {'a': 1})", "self.startsWith('a') && self.size() < 2000");
    assert!(cost_of(hashing, 100_000, 1) < 10);
    assert!(cost_of(hashing, 100_000, 300) > 200_000);
    assert_eq!(
        cost_of(ordinary, 1_000, 300),
        300 * cost_of(ordinary, 1_000, 1),
        "ordinary rules use no free steps"
    );
}

#[test]
fn an_interruption_ends_the_validation_of_a_definition() {
    let rules = vec![json!({"rule": "self.size() > 'a'"}); 10];
    let schema = json!({"type": "string", "x-kubernetes-validations": rules});
    let checks = std::cell::Cell::new(0);
    let interrupted = || {
        checks.set(checks.get() + 1);
        checks.get() > 2
    };
    let context = EvaluationContext::new(&interrupted);
    let errors = definition::validate(&schema, &Path::new("s"), &[], &Requirements::NEW_DEFINITION, &context);
    assert_eq!((errors.len(), checks.get()), (3, 3));
    assert_eq!(errors[2].to_string(), "s: Internal error: operation interrupted");
}

#[test]
fn rules_of_a_definition_share_a_budget_for_patterns() {
    let rule = |number: usize| json!({"rule": format!(r"self.matches('((\\pL|\\pN){{30}}){{30}}{number}')")});
    let rules: Vec<Value> = (0..100).map(rule).collect();
    let schema = json!({"type": "string", "maxLength": 9, "x-kubernetes-validations": rules});
    let context = EvaluationContext::new(&|| false);
    context.compilation.set_remaining(20_000);
    let errors = definition::validate(&schema, &Path::new("s"), &[], &Requirements::NEW_DEFINITION, &context);
    assert!(
        (1..5).contains(&errors.len()),
        "only patterns that were built are known to be too large: {errors:?}"
    );
}

#[test]
fn rules_that_do_not_compile_or_cost_too_much_are_rejected() {
    let unbounded = json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "self.all(a, self.all(b, a == b))"}]});
    let cases = [
        (json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}), vec![]),
        (
            json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self + 1"}]}),
            vec!["properties[spec].x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"self + 1\""],
        ),
        (
            json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", "messageExpression": "1"}]}),
            vec!["properties[spec].x-kubernetes-validations[0].messageExpression: Invalid value: {\"Rule\""],
        ),
        (
            json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", "optionalOldSelf": true}]}),
            vec![
                "properties[spec].x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if",
            ],
        ),
        (
            json!({"type": "array", "items": {"type": "string", "maxLength": 5,
                "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}, "maxItems": 5}),
            vec![
                "properties[spec].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within s.properties[spec]",
            ],
        ),
        (
            unbounded,
            vec![
                "properties[spec].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try",
                "properties[spec].x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total",
                "Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x",
            ],
        ),
    ];
    for (spec, expected) in cases {
        let found = definition_errors(&with_spec(&spec));
        assert_eq!(found.len(), expected.len(), "{spec}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found}");
        }
    }
}

#[test]
fn failures_are_reported_with_path_and_reason() {
    let schema = with_spec(&json!({"type": "object", "properties": {
        "n": {"type": "integer", "x-kubernetes-validations": [{"rule": "10 / self > 1", "message": "ten"}]},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-validations": [
            {"rule": "!('bad' in self)", "fieldPath": "['bad']", "reason": "FieldValueForbidden", "message": "no bad"}]},
        "list": {"type": "array", "items": {"type": "string",
            "x-kubernetes-validations": [{"rule": "self != 'x'", "messageExpression": "'not ' + self"}]}},
    }, "x-kubernetes-validations": [{"rule": "!has(self.n) || self.n < 50"}]}));
    let cases = [
        (json!({"n": 1, "list": ["a"], "tags": {}}), vec![]),
        (json!({"n": 0}), vec!["spec.n: Invalid value: \"integer\": division by zero evaluating rule: ten"]),
        (json!({"n": 8}), vec!["spec.n: Invalid value: 8: ten"]),
        (json!({"tags": {"bad": "x"}}), vec!["spec.tags.[bad]: Forbidden: no bad"]),
        (json!({"list": ["a", "x"]}), vec!["spec.list[1]: Invalid value: \"x\": not x"]),
        (
            json!({"n": 60}),
            vec![
                "spec: Invalid value: failed rule: !has(self.n) || self.n < 50",
                "spec.n: Invalid value: 60: ten",
            ],
        ),
        (json!({"n": null}), vec![]),
    ];
    for (spec, expected) in cases {
        let (found, _) = rule_results(&schema, &json!({"spec": spec}), None);
        assert_eq!(found, expected, "{spec}");
    }
}

#[test]
fn transition_rules_follow_values_by_their_keys() {
    let schema = with_spec(&json!({"type": "object", "properties": {
        "once": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "once"}]},
        "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "message": "falls"}]}},
        "count": {"type": "integer", "x-kubernetes-validations": [
            {"rule": "self == oldSelf.optMap(o, o + 1).orValue(0)", "optionalOldSelf": true, "message": "steps"}]},
    }}));
    let old = json!({"spec": {"once": "a", "items": [{"k": "a", "v": 5}, {"k": "b", "v": 1}], "count": 3}});
    let cases = [
        (json!({"once": "a", "items": [{"k": "n", "v": 0}, {"k": "b", "v": 2}], "count": 4}), vec![]),
        (json!({"once": "b"}), vec!["spec.once: Invalid value: \"b\": once"]),
        (
            json!({"items": [{"k": "b", "v": 1}, {"k": "a", "v": 4}]}),
            vec!["spec.items[1]: Invalid value: falls"],
        ),
        (json!({"count": 3}), vec!["spec.count: Invalid value: 3: steps"]),
    ];
    for (spec, expected) in cases {
        let (found, _) = rule_results(&schema, &json!({"spec": spec}), Some(&old));
        assert_eq!(found, expected, "{spec}");
    }
    let (created, _) = rule_results(&schema, &json!({"spec": {"once": "z", "count": 1}}), None);
    assert_eq!(created, ["spec.count: Invalid value: 1: steps"]);
}

#[test]
fn errors_of_unchanged_values_are_warnings() {
    let schema = with_spec(&json!({"type": "object", "properties": {
        "a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 5"}]}, "b": {"type": "integer"},
        "l": {"type": "array", "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 5"}]}},
    }}));
    let old = json!({"spec": {"a": 1, "b": 1, "l": [1]}});
    let (errors, warnings) = rule_results(&schema, &json!({"spec": {"a": 1, "b": 2, "l": [1]}}), Some(&old));
    assert_eq!(errors, [""; 0]);
    assert_eq!(
        warnings,
        [
            "spec.a: Invalid value: 1: failed rule: self > 5",
            "spec.l[0]: Invalid value: 1: failed rule: self > 5"
        ]
    );
    let (errors, warnings) =
        rule_results(&schema, &json!({"spec": {"a": 2, "b": 1, "l": [1, 2]}}), Some(&old));
    assert_eq!((errors.len(), warnings.len()), (3, 0), "{errors:?}");
}

#[test]
fn root_rules_can_read_the_name_and_sets_are_unordered() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"},
            "x-kubernetes-validations": [{"rule": "self == ['x', 'y']", "message": "x and y"}]},
        "when": {"type": "string", "format": "date-time",
            "x-kubernetes-validations": [{"rule": "self > timestamp('2020-01-01T00:00:00Z')", "message": "old"}]},
    }}}, "x-kubernetes-validations": [{"rule": "self.metadata.name != 'bad'", "message": "name"}]});
    assert_eq!(definition_errors(&schema), [""; 0]);
    let object = |name: &str, spec: Value| json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": name, "uid": "u"}, "spec": spec});
    assert_eq!(rule_results(&schema, &object("bad", json!({})), None).0, ["<nil>: Invalid value: name"]);
    assert_eq!(rule_results(&schema, &object("a", json!({"set": ["y", "x"]})), None).0, [""; 0]);
    assert_eq!(
        rule_results(&schema, &object("a", json!({"set": ["y"], "when": "2019-01-01T00:00:00Z"})), None).0,
        ["spec.set: Invalid value: x and y", "spec.when: Invalid value: \"2019-01-01T00:00:00Z\": old"]
    );
}

#[test]
fn an_exhausted_budget_ends_the_evaluation() {
    let schema = with_spec(
        &json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"},
        "x-kubernetes-validations": [{"rule": "self.all(a, self.all(b, self.all(c, a + b != c + '!')))"}, {"rule": "false"}]}}}),
    );
    let list: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    let (errors, _) = rule_results(&schema, &json!({"spec": {"l": list}}), None);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].starts_with(
            "spec.l: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further"
        ),
        "{errors:?}"
    );
}
