//! Schemas, and the nodes into which they are compiled.

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
fn flags_cover_a_node_and_its_subtree() {
    let schema = compile(&json!({"type": "object", "properties": {
        "d": {"type": "object", "properties": {"x": {"type": "integer", "default": 1}}},
        "u": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "e": {"type": "object", "additionalProperties": {"type": "object", "x-kubernetes-embedded-resource": true}},
        "r": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "true"}]}},
    }}));
    let all = SubtreeFlags { defaults: true, rules: true, unique_lists: true, embedded: true };
    assert_eq!(schema.root().subtree_flags, all);
    let marks = |name: &str| schema.root().property(name).unwrap().subtree_flags;
    assert_eq!(marks("d"), SubtreeFlags { defaults: true, ..SubtreeFlags::default() });
    assert_eq!(marks("u"), SubtreeFlags { unique_lists: true, ..SubtreeFlags::default() });
    assert_eq!(marks("e"), SubtreeFlags { embedded: true, ..SubtreeFlags::default() });
    assert_eq!(marks("r"), SubtreeFlags { rules: true, ..SubtreeFlags::default() });
}

#[test]
fn keywords_without_structural_form_are_rejected() {
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
    assert!(Structural::compile(&json!({"items": []})).is_ok(), "upstream takes an empty list for none");
    let mut deep = json!({"type": "string"});
    for _ in 0..=MAX_DEPTH {
        deep = json!({"type": "array", "items": deep});
    }
    // Test threads have smaller stacks than threads that serve requests.
    let compile = move || Structural::compile(&deep).unwrap_err();
    let compiled = std::thread::Builder::new().stack_size(8 << 20).spawn(compile).unwrap().join();
    assert_eq!(compiled.unwrap(), CompileError::TooDeep);
}

#[test]
fn formats_apply_only_to_their_types_and_ignore_dashes() {
    let kind = |name, ty| Format::recognized(name, ty).map(|format| format.kind);
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

/// Typical content of a large definition: groups of fields with descriptions, bounds, patterns and lists.
fn large(groups: usize) -> Value {
    let group = |at: usize| {
        let field = |name: usize| {
            let mut field = json!({"type": "string", "maxLength": name % 7, "description": format!("What field {name} of group {at} is for.")});
            if name.is_multiple_of(3) {
                field["pattern"] = format!("^[a-z]{{1,{at}}}$").into();
            }
            field
        };
        let fields: Map<String, Value> = (0..9).map(|name| (format!("field{name}"), field(name))).collect();
        json!({"type": "object", "properties": fields, "required": ["field1"]})
    };
    let groups: Map<String, Value> = (0..groups).map(|at| (format!("group{at}"), group(at))).collect();
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": groups}}})
}

#[test]
fn equal_properties_of_a_large_schema_are_one_node_and_patterns_are_compiled_when_needed() {
    let schema = compile(&large(500));
    let group = schema.root().property("spec").unwrap().property("group7").unwrap();
    let pattern = group.property("field0").unwrap().checks.as_ref().unwrap().pattern.as_ref().unwrap();
    assert!(!pattern.is_compiled());
    assert_eq!(pattern.is_match("abc"), Ok(true));
    assert!(pattern.is_compiled());
    // A field of a group has one of seven lengths, or the pattern of the group.
    assert!(schema.nodes() < 500 * 5, "{}", schema.nodes());
}

#[test]
fn nodes_are_small() {
    let (node, checks) = (std::mem::size_of::<SchemaNode>(), std::mem::size_of::<Checks>());
    // A property that shares nothing takes half a KiB, including its name, its entry in the parent and its checks.
    assert!(node + checks <= 520, "{node} + {checks}");
}
