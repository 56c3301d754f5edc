//! Defaults, each validated against its own schema.

use std::sync::Arc;

use serde_json::json;

use super::super::{Requirements, has_unpruned_defaults, validate};
use super::*;
use crate::model::TypeSetBuilder;
use crate::schema::Schema;

pub(in crate::structural::definition) fn object_meta() -> Typed {
    let fields = json!({"name": {"type": "string"}, "labels": {"type": "{}string"}});
    let packages = serde_json::from_value(json!({"m": {"ObjectMeta": {"fields": fields}}})).unwrap();
    let mut builder = TypeSetBuilder::default();
    crate::description::add(&mut builder, &indexmap::IndexMap::new(), packages).unwrap();
    let types = Arc::new(builder.build().unwrap());
    Schema::named(&types, "m.ObjectMeta").unwrap().typed().unwrap().clone()
}

fn rules(path_of: &LazyPath<'_>, metadata: &Object) -> Vec<Error> {
    let bad = metadata.name().contains('_');
    bad.then(|| Error::invalid(&path_of().child("metadata").child("name"), metadata.name(), "bad"))
        .into_iter()
        .collect()
}

fn with<T>(
    properties: Value,
    validate: impl FnOnce(&portico_machinery::Cursor<'_>, MetadataRules<'_>) -> T,
) -> T {
    let schema = json!({"type": "object", "properties": properties});
    let object = Object::from_map(Map::from_iter([("s".to_owned(), schema)]));
    let types = object_meta();
    validate(&object.at(&["s"]), MetadataRules { types: &types, rules: &rules })
}

fn errors_of(properties: Value) -> Vec<String> {
    with(properties, |schema, metadata| {
        validate(schema, &Requirements::NEW_DEFINITION, metadata, &|| false)
            .iter()
            .map(|e| e.to_string().replace("s.properties[a]", "a"))
            .collect()
    })
}

#[test]
fn a_default_is_validated_against_its_own_schema() {
    for (schema, want) in [
        (json!({"type": "string", "default": "x"}), vec![]),
        (
            json!({"type": "string", "default": 1}),
            vec![r#"a.default: Invalid value: "integer":  in body must be of type string: "integer""#],
        ),
        (
            json!({"type": "string", "enum": ["x"], "default": "y"}),
            vec![r#"a.default: Unsupported value: "y": supported values: "x""#],
        ),
        (
            json!({"type": "object", "properties": {"b": {"type": "integer"}}, "default": {"b": "x", "c": 1}}),
            vec![
                r#"a.default: Invalid value: {"b":"x","c":1}: must not have unknown fields"#,
                r#"a.default.b: Invalid value: "string": b in body must be of type integer: "string""#,
            ],
        ),
        (
            json!({"type": "array", "items": {"type": "object", "properties": {"b": {"type": "integer", "default": "x"}}}}),
            vec![
                r#"a.items.properties[b].default: Invalid value: "string":  in body must be of type integer: "string""#,
            ],
        ),
        // Defaults below additional properties are not validated.
        (json!({"type": "object", "additionalProperties": {"type": "string", "default": 1}}), vec![]),
    ] {
        assert_eq!(errors_of(json!({"a": schema})), want, "{schema}");
    }
}

#[test]
fn objects_in_defaults_need_a_kind_and_valid_metadata() {
    let object = |default: Value| {
        errors_of(
            json!({"a": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true, "default": default}}),
        )
    };
    assert!(object(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})).is_empty());
    assert_eq!(object(json!({})), ["a.default.apiVersion: Required value", "a.default.kind: Required value"]);
    let named = |metadata: Value| object(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}));
    assert_eq!(named(json!({"name": "a_b"})), [r#"a.default.metadata.name: Invalid value: "a_b": bad"#]);
    assert_eq!(named(json!({"labels": 5})).len(), 1);
    let nested = |default: Value| {
        errors_of(json!({"a": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "default": default}}}}}}))
    };
    assert!(nested(json!("good")).is_empty());
    assert_eq!(
        nested(json!("a_b")),
        [
            r#"a.properties[metadata].properties[name].default: Invalid value: "a_b": must result in valid metadata: metadata.name: Invalid value: "a_b": bad"#
        ]
    );
}

#[test]
fn unpruned_defaults_of_old_definitions_are_detected() {
    let has = |schema: Value| with(json!({"a": schema}), has_unpruned_defaults);
    assert!(!has(json!({"type": "object", "properties": {"b": {"type": "string"}}, "default": {"b": "x"}})));
    assert!(has(json!({"type": "object", "properties": {"b": {"type": "string"}}, "default": {"c": "x"}})));
    assert!(has(
        json!({"type": "object", "additionalProperties": {"type": "object", "properties": {}, "default": {"c": 1}}})
    ));
}
