//! The rules of a schema, each on its own and in the order of reports.

use portico_machinery::Object;
use serde_json::{Map, Value, json};

use super::errors::MAX_ERRORS;
use super::*;

/// Returns the errors of a schema at the path `s`.
fn errors_of(schema: Value, requirements: &Requirements) -> Vec<String> {
    let object = Object::from_map(Map::from_iter([("s".to_owned(), schema)]));
    let types = defaults::tests::object_meta();
    let metadata = MetadataRules { types: &types, rules: &|_, _| Vec::new() };
    validate(&object.at(&["s"]), requirements, metadata, &|| false).iter().map(ToString::to_string).collect()
}

/// Returns the errors of a schema for `spec` of an object.
fn errors_of_spec(spec: Value) -> Vec<String> {
    let texts =
        errors_of(json!({"type": "object", "properties": {"spec": spec}}), &Requirements::NEW_DEFINITION);
    texts.iter().map(|text| text.replace("s.properties[spec]", "spec")).collect()
}

#[test]
fn a_skeleton_has_one_type_at_each_node() {
    for (schema, want) in [
        (json!({}), "spec.type: Required value: must not be empty for specified object fields"),
        (json!({"type": "array"}), "spec.items: Required value: must be specified"),
        (
            json!({"type": "array", "items": {}}),
            "spec.items.type: Required value: must not be empty for specified array items",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}),
            "spec.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (
            json!({"type": "string", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
            r#"spec.type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true"#,
        ),
        (
            json!({"type": "string", "anyOf": [{"type": "string"}]}),
            "spec.anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            json!({"type": "object", "not": {"properties": {"metadata": {"enum": [1]}}}}),
            "spec.not.properties[metadata]: Forbidden: must not be specified in a nested context",
        ),
        (
            json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}, "x-kubernetes-list-type": "set"}),
            r#"spec.items.x-kubernetes-list-type: Invalid value: "set": must be atomic as item of a list with x-kubernetes-list-type=set"#,
        ),
        (
            json!({"type": "string", "x-kubernetes-map-type": "atomic"}),
            r#"spec.type: Invalid value: "string": must be object if x-kubernetes-map-type is specified"#,
        ),
    ] {
        assert_eq!(errors_of_spec(schema.clone()), [want], "{schema}");
    }
}

#[test]
fn int_or_string_may_be_spelled_in_three_ways() {
    let any_of = json!([{"type": "integer"}, {"type": "string"}]);
    for good in [
        json!({"x-kubernetes-int-or-string": true}),
        json!({"x-kubernetes-int-or-string": true, "anyOf": any_of}),
        json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": any_of}, {"pattern": "a"}]}),
    ] {
        assert_eq!(errors_of_spec(good.clone()), Vec::<String>::new(), "{good}");
    }
    let second = json!({"x-kubernetes-int-or-string": true, "allOf": [{"pattern": "a"}, {"anyOf": any_of}]});
    assert_eq!(errors_of_spec(second).len(), 2);
}

#[test]
fn the_root_is_an_object_with_few_restrictions_of_metadata() {
    let name = json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}}});
    assert!(errors_of(name, &Requirements::NEW_DEFINITION).is_empty());
    let labels =
        json!({"type": "object", "properties": {"metadata": {"type": "object", "description": "x"}}});
    assert_eq!(errors_of(labels, &Requirements::NEW_DEFINITION).len(), 1);
    let null = json!({"type": "object", "nullable": true});
    assert_eq!(
        errors_of(null, &Requirements::NEW_DEFINITION),
        ["s.nullable: Forbidden: nullable cannot be true at the root"]
    );
    let default = json!({"type": "object", "properties": {"kind": {"type": "string", "default": "X"}}});
    assert_eq!(
        errors_of(default, &Requirements::NEW_DEFINITION),
        ["s.properties[kind].default: Forbidden: must not be set in top-level kind"]
    );
}

#[test]
fn with_a_status_subresource_the_root_has_only_keywords_that_do_not_affect_it() {
    let requirements = Requirements { has_status: true, ..Requirements::NEW_DEFINITION };
    let good = json!({"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object"}}});
    assert!(errors_of(good, &requirements).is_empty());
    let texts = errors_of(json!({"type": "object", "maxProperties": 1}), &requirements);
    assert!(texts[0].starts_with(r#"s: Invalid value: {"ID":"","#));
    assert!(texts[0].contains("only [Description Type Format Title "));
    let texts = errors_of(json!({"type": "string"}), &requirements);
    assert!(texts[0].starts_with(r#"s.type: Invalid value: "string": only "object" is allowed"#));
}

#[test]
fn only_the_roots_logical_operators_need_a_skeleton() {
    let root = json!({"type": "object", "anyOf": [{"properties": {"a": {"minimum": 1}}}]});
    let want = "s.properties[a]: Required value: because it is defined in s.anyOf[0].properties[a]";
    assert_eq!(errors_of(root, &Requirements::NEW_DEFINITION), [want]);
    assert!(
        errors_of_spec(json!({"type": "object", "anyOf": [{"properties": {"a": {"minimum": 1}}}]}))
            .is_empty()
    );
}

#[test]
fn structural_errors_are_sorted_and_come_before_those_of_nodes() {
    let texts =
        errors_of_spec(json!({"type": "object", "properties": {"b": {}, "a": {"uniqueItems": true}}}));
    assert_eq!(
        texts,
        [
            "spec.properties[a].type: Required value: must not be empty for specified object fields",
            "spec.properties[b].type: Required value: must not be empty for specified object fields",
            "spec.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ]
    );
}

#[test]
fn a_schema_without_structural_form_is_reported_only_when_nothing_else_is() {
    let schema = json!({"type": "object", "$schema": "x"});
    assert_eq!(
        errors_of(schema, &Requirements::NEW_DEFINITION),
        [r#"s: Invalid value: "": OpenAPIV3Schema 'schema' is not supported"#]
    );
    let both = json!({"$schema": "x", "$ref": "y"});
    assert_eq!(errors_of(both, &Requirements::NEW_DEFINITION), ["s.$ref: Forbidden: $ref is not supported"]);
}

#[test]
fn old_definitions_keep_accepted_violations() {
    let lenient = Requirements {
        structural: false,
        known_types: false,
        atomic_sets: false,
        strict_keys: false,
        ..Requirements::NEW_DEFINITION
    };
    for (schema, trait_of) in [
        (json!({"type": "float"}), SchemaFeatures { unknown_types: true, ..SchemaFeatures::default() }),
        (json!({"properties": {"a": {}}}), SchemaFeatures::default()),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object", "nullable": true}}),
            SchemaFeatures {
                extensions: true,
                loose_sets: true,
                loose_keys: true,
                ..SchemaFeatures::default()
            },
        ),
    ] {
        let object = Object::from_map(Map::from_iter([("s".to_owned(), schema.clone())]));
        assert_eq!(features(&object.at(&["s"])), trait_of, "{schema}");
        assert!(
            errors_of(schema.clone(), &lenient).is_empty()
                && !errors_of(schema, &Requirements::NEW_DEFINITION).is_empty()
        );
    }
}

#[test]
fn the_form_of_rules_is_checked_before_their_expressions() {
    let rule = |rule: Value| {
        let texts = errors_of_spec(
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-validations": [rule]}),
        );
        texts.join("; ").replace("spec.x-kubernetes-validations[0].", "")
    };
    for (schema, want) in [
        (json!({"rule": " "}), "rule: Required value: rule is not specified"),
        (
            json!({"rule": "a\nb"}),
            "message: Required value: message must be specified if rule contains line breaks",
        ),
        (
            json!({"rule": "a", "message": " "}),
            r#"message: Invalid value: " ": must be non-empty if specified"#,
        ),
        (json!({"rule": "true", "fieldPath": ".a"}), ""),
        (json!({"rule": "a", "fieldPath": ".b"}), r#"fieldPath: Invalid value: ".b": must be a valid path"#),
        (
            json!({"rule": "a", "reason": "Luck"}),
            r#"reason: Unsupported value: "Luck": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired""#,
        ),
    ] {
        assert_eq!(rule(schema.clone()), want, "{schema}");
    }
}

#[test]
fn a_large_schema_is_validated_in_bounded_time_with_bounded_errors() {
    let properties: Map<String, Value> = (0..20_000).map(|n| (format!("p{n}"), json!({}))).collect();
    let texts = errors_of(json!({"type": "object", "properties": properties}), &Requirements::NEW_DEFINITION);
    assert_eq!(texts.len(), MAX_ERRORS);
}
