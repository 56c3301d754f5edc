//! Schemas of definitions: cost of validation and compilation.

use portico_machinery::{Cursor, Object};
use serde_json::{Value, json};

use super::{Row, assert_linear_time, map, names, of_spec};
use crate::structural::definition::{
    MAX_PROPERTY_NAME_BYTES, MAX_REQUIRED, MetadataRules, Requirements, validate,
};
use crate::structural::{Structural, object_meta_for_tests};

/// Returns the errors of a schema.
fn check(schema: &Value) -> Vec<portico_machinery::field::Error> {
    let object = Object::from_map([("s".to_owned(), schema.clone())].into_iter().collect());
    let types = object_meta_for_tests();
    let at: Cursor<'_> = object.at(&["s"]);
    validate(
        &at,
        &Requirements::NEW_DEFINITION,
        MetadataRules { types: &types, rules: &|_, _| Vec::new() },
        &|| false,
    )
}

/// Schemas with equal numbers of names on both sides, so that pairwise comparisons are detected.
fn schemas() -> Vec<Row<Value>> {
    vec![
        ("required", |n| {
            of_spec(
                &json!({"type": "object", "properties": map(n, &json!({"type": "string"})), "required": names(n)}),
            )
        }),
        ("one name required many times", |n| of_spec(&json!({"type": "object", "required": vec!["a"; n]}))),
        ("enum", |n| of_spec(&json!({"type": "string", "enum": names(n)}))),
        ("branches", |n| {
            let branches: Vec<Value> =
                (0..n).map(|at| json!({"properties": {"a": {"minLength": at}}})).collect();
            of_spec(&json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": branches}))
        }),
        ("defaults", |n| {
            of_spec(
                &json!({"type": "object", "properties": map(n, &json!({"type": "string", "default": "d"}))}),
            )
        }),
        ("a rule above required names", |n| {
            of_spec(
                &json!({"type": "object", "properties": map(n, &json!({"type": "string", "maxLength": 1})),
                "required": names(n), "x-kubernetes-validations": [{"rule": "self.k0 == ''"}]}),
            )
        }),
        ("rules", |n| {
            let rule = json!({"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": "self != ''"}]});
            of_spec(&json!({"type": "object", "properties": map(n / 20, &rule)}))
        }),
        ("defaults at each level above rules", |n| {
            let rule = json!({"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": "self != ''"}]});
            let lowest = json!({"type": "object", "default": {}, "properties": map(n / 20, &rule)});
            let parent = |child, _| json!({"type": "object", "default": {}, "properties": {"below": child}});
            of_spec(&(0..n / 50).fold(lowest, parent))
        }),
        ("missing types", |n| of_spec(&json!({"type": "object", "properties": map(n, &json!({}))}))),
    ]
}

#[test]
fn checking_a_schema_grows_with_its_size() {
    for (name, schema) in schemas() {
        assert_linear_time(name, 500, schema, |schema| drop(check(schema)));
    }
}

#[test]
fn compiling_a_schema_grows_with_its_size() {
    for (name, schema) in schemas() {
        assert_linear_time(name, 1_000, schema, |schema| drop(Structural::compile(schema)));
    }
}

/// Eighty thousand required names took 13.8 s to check, and again as long before the first object.
#[test]
fn oversized_schemas_are_rejected_immediately() {
    let errors = check(&of_spec(&json!({"type": "object", "required": names(MAX_REQUIRED + 1)})));
    let want = format!("s.required: Too many: {}: must have at most {MAX_REQUIRED} items", MAX_REQUIRED + 1);
    assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [want]);
    let long = "p".repeat(MAX_PROPERTY_NAME_BYTES + 1);
    let errors = check(&of_spec(&json!({"type": "object", "properties": {long: {}}})));
    assert_eq!(errors.len(), 1);
    assert!(errors[0].to_string().starts_with("s.properties[ppp"), "{}", errors[0]);
    assert!(errors[0].to_string().ends_with(&format!("not be more than {MAX_PROPERTY_NAME_BYTES} bytes")));
}

#[test]
fn errors_of_a_schema_are_bounded_in_bytes() {
    let name = "p".repeat(MAX_PROPERTY_NAME_BYTES);
    let child = json!({"type": "object", "properties": map(3_000, &json!({}))});
    let deep = json!({"type": "object", "properties": {name.as_str(): {"type": "object", "properties": {name.as_str(): child}}}});
    let errors = check(&deep);
    let bytes: usize = errors.iter().map(|error| error.to_string().len()).sum();
    assert!(errors.len() > 100 && bytes < 5 * 1024 * 1024, "{} {bytes}", errors.len());
}

#[test]
fn bounds_near_the_limit_of_the_range_saturate() {
    for length in [4_611_686_018_427_387_904_i64, i64::MAX] {
        for text in [json!({"type": "string"}), json!({"x-kubernetes-int-or-string": true})] {
            let mut text = text;
            text["maxLength"] = length.into();
            text["x-kubernetes-validations"] = json!([{"rule": "self == self"}]);
            let errors = check(&of_spec(&text));
            assert!(errors.iter().any(|error| error.body.contains("exceeds budget")), "{text}: {errors:?}");
        }
        let many = json!({"type": "array", "maxItems": length, "items": {"type": "object", "maxProperties": length,
            "additionalProperties": {"type": "string", "maxLength": length}},
            "x-kubernetes-validations": [{"rule": "self.all(x, x.all(k, x[k] == ''))"}]});
        assert!(check(&of_spec(&many)).iter().any(|error| error.body.contains("exceeds budget")));
    }
}
