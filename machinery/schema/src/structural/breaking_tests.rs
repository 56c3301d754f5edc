//! Pairs of schemas of one field `f`, and the breaking changes from the first to the second.

use serde_json::{Value, json};

use super::*;

fn changes(old: Value, new: Value) -> Vec<String> {
    let object = |f: Value| json!({"type": "object", "properties": {"f": f}});
    let compiled = |f: Value| Structural::compile(&object(f)).unwrap();
    compiled(new)
        .breaking_changes(&compiled(old))
        .into_iter()
        .map(|b| format!("{}: {}", b.path, b.text))
        .collect()
}

#[test]
fn widening_changes_are_not_reported() {
    let rows = [
        (json!({"type": "integer"}), json!({"type": "number"})),
        (json!({"type": "string", "maxLength": 3}), json!({"type": "string", "maxLength": 4})),
        (json!({"type": "string", "enum": ["a"]}), json!({"type": "string", "enum": ["a", "b"]})),
        (json!({"type": "string"}), json!({"type": "string", "nullable": true})),
        (json!({"type": "string"}), json!({"x-kubernetes-int-or-string": true})),
        (json!({"type": "integer", "minimum": 1}), json!({"type": "integer"})),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "default": "x"}}}),
        ),
    ];
    for (old, new) in rows {
        assert_eq!(changes(old.clone(), new.clone()), Vec::<String>::new(), "{old} {new}");
    }
}

#[test]
fn a_narrowing_change_is_reported_with_its_path() {
    let rows = [
        (
            json!({"type": "string"}),
            json!({"type": "integer"}),
            "f: type changes from string to integer: stored values become invalid",
        ),
        (json!({"type": "string"}), json!({"type": "string", "maxLength": 3}), "f: has a lower maxLength, 3"),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!({"type": "string", "enum": ["a"]}),
            "f: no longer allows \"b\"",
        ),
        (
            json!({"type": "string"}),
            json!({"type": "string", "enum": ["a"]}),
            "f: is restricted to listed values",
        ),
        (json!({"type": "integer"}), json!({"type": "integer", "minimum": 1}), "f: has a higher minimum, 1"),
        (
            json!({"type": "integer", "maximum": 5}),
            json!({"type": "integer", "maximum": 5, "exclusiveMaximum": true}),
            "f: has a lower maximum, 5",
        ),
        (
            json!({"type": "string", "nullable": true}),
            json!({"type": "string"}),
            "f: is no longer nullable: a stored null is removed or replaced by the default",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "properties": {"b": {"type": "string"}}}),
            "f.a: is removed: its values are pruned",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}),
            "f: requires a, which has no default: objects without it are refused",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array", "items": {"type": "string", "pattern": "^a"}}),
            "f[]: must match another pattern, ^a",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
            "f[*]: type changes from string to boolean: stored values become invalid",
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            json!({"type": "object"}),
            "f: no longer preserves unknown fields: they are pruned",
        ),
        (
            json!({"type": "string", "default": "a"}),
            json!({"type": "string", "default": "b"}),
            "f: default changes from \"a\" to \"b\": objects without the field get another value",
        ),
        (
            json!({"type": "string"}),
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]}),
            "f: has a new rule: self != ''",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
            "f: list type changes: server-side apply merges it differently, and its elements may have to be unique",
        ),
    ];
    for (old, new, want) in rows {
        assert_eq!(changes(old.clone(), new.clone()), [want], "{old} {new}");
    }
}

#[test]
fn at_most_a_thousand_changes_are_reported() {
    let many = |ty: &str| {
        let properties: serde_json::Map<String, Value> =
            (0..2_000).map(|at| (format!("p{at}"), json!({"type": ty}))).collect();
        json!({"type": "object", "properties": properties})
    };
    assert_eq!(changes(many("string"), many("integer")).len(), MAX_BREAKING);
}
