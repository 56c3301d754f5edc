use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::structural::Structural;

fn compile(props: &Value) -> Arc<Structural> {
    Structural::compile(props).unwrap()
}

#[test]
fn equal_sub_schemas_are_one_node() {
    let leaf = |words: &str| json!({"type": "string", "maxLength": 3, "description": words});
    let schema = compile(
        &json!({"type": "object", "properties": {"b": leaf("x"), "a": leaf("y"), "c": {"type": "string"}}}),
    );
    let root = schema.root();
    assert!(Arc::ptr_eq(root.property("a").unwrap(), root.property("b").unwrap()));
    assert_eq!(schema.nodes(), 3);
    assert_eq!(root.properties.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[test]
fn marks_tell_what_is_here_or_below() {
    let schema = compile(&json!({"type": "object", "properties": {
        "d": {"type": "object", "properties": {"x": {"type": "integer", "default": 1}}},
        "u": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "e": {"type": "object", "additionalProperties": {"type": "object", "x-kubernetes-embedded-resource": true}},
        "r": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "true"}]}},
    }}));
    let all = Marks { defaults: true, rules: true, unique_lists: true, embedded: true };
    assert_eq!(schema.root().marks, all);
    let marks = |name: &str| schema.root().property(name).unwrap().marks;
    assert_eq!(marks("d"), Marks { defaults: true, ..Marks::default() });
    assert_eq!(marks("u"), Marks { unique_lists: true, ..Marks::default() });
    assert_eq!(marks("e"), Marks { embedded: true, ..Marks::default() });
    assert_eq!(marks("r"), Marks { rules: true, ..Marks::default() });
}

#[test]
fn what_no_structural_schema_may_say_is_refused() {
    let rows = [
        (json!({"id": "x"}), CompileError::Unsupported("id")),
        (json!({"$schema": "x"}), CompileError::Unsupported("schema")),
        (json!({"anyOf": [{"$ref": "x"}]}), CompileError::Unsupported("$ref")),
        (
            json!({"properties": {"a": {"dependencies": {"a": ["b"]}}}}),
            CompileError::Unsupported("dependencies"),
        ),
        (json!({"additionalItems": false}), CompileError::Unsupported("additionalItems")),
        (json!({"items": [{"type": "string"}]}), CompileError::Items),
        (json!({"x-kubernetes-preserve-unknown-fields": false}), CompileError::PreserveFalse),
    ];
    for (props, want) in rows {
        assert_eq!(Structural::compile(&props).unwrap_err(), want, "{props}");
    }
    let mut deep = json!({"type": "string"});
    for _ in 0..200 {
        deep = json!({"type": "array", "items": deep});
    }
    assert_eq!(Structural::compile(&deep).unwrap_err(), CompileError::TooDeep);
}

#[test]
fn formats_count_only_on_their_types_and_without_dashes() {
    let kind = |name, ty| Format::recognised(name, ty).map(|format| format.kind);
    use super::super::format::FormatKind as F;
    assert_eq!(kind("date-time", Some(JsonType::String)), Some(F::DateTime));
    assert_eq!(kind("i-p-v-4", None), Some(F::Ipv4));
    assert_eq!(kind("int32", Some(JsonType::Integer)), Some(F::Int32));
    for (name, ty) in [
        ("int32", None),
        ("int32", Some(JsonType::Number)),
        ("date", Some(JsonType::Object)),
        ("int-32", Some(JsonType::Integer)),
        ("nonsense", Some(JsonType::String)),
    ] {
        assert_eq!(kind(name, ty), None, "{name}");
    }
}
