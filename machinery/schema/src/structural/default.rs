//! Defaults: what is absent, or null where null is no value, becomes what the schema says; inside what is there.

use serde_json::{Map, Value};

use super::model::Node;

/// Sets them. Whether anything changed.
pub(super) fn object(map: &mut Map<String, Value>, node: &Node) -> bool {
    if !node.marks.defaults {
        return false;
    }
    let mut any = false;
    for (name, below) in &node.properties {
        let Some(default) = &below.default else { continue };
        match map.get_mut(&**name) {
            Some(held) if is_unset(held, below) => *held = default.clone(),
            Some(_) => continue,
            None => {
                map.insert(name.to_string(), default.clone());
            }
        }
        any = true;
    }
    for (key, value) in map.iter_mut() {
        any |= match node.property(key) {
            Some(below) => inside(value, below),
            None => {
                node.additional.schema().is_some_and(|below| replaced(value, below) | inside(value, below))
            }
        };
    }
    any
}

fn inside(value: &mut Value, node: &Node) -> bool {
    match (value, &node.items) {
        (Value::Object(map), _) => object(map, node),
        (Value::Array(list), Some(items)) if node.marks.defaults => {
            list.iter_mut().fold(false, |any, item| replaced(item, items) | inside(item, items) | any)
        }
        _ => false,
    }
}

/// Puts the default in the place of a null that is none.
fn replaced(value: &mut Value, node: &Node) -> bool {
    match &node.default {
        Some(default) if is_unset(value, node) => {
            *value = default.clone();
            true
        }
        _ => false,
    }
}

fn is_unset(value: &Value, node: &Node) -> bool {
    value.is_null() && !node.nullable
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::structural::Structural;

    #[test]
    fn defaults_fill_what_is_absent_inside_what_is_there() {
        let schema = Structural::compile(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "def": {"type": "string", "default": "d"},
            "nuld": {"type": "string", "nullable": true, "default": "d"},
            "deep": {"type": "object", "default": {}, "properties": {
                "a": {"type": "integer", "default": 1},
                "b": {"type": "object", "properties": {"c": {"type": "integer", "default": 2}}},
            }},
            "m": {"type": "object", "additionalProperties": {"type": "object", "default": {"y": 1}, "properties": {"x": {"type": "integer", "default": 3}}}},
            "l": {"type": "array", "items": {"type": "string", "default": "i"}},
        }}}}))
        .unwrap();
        let base = json!({"def": "d", "nuld": "d", "deep": {"a": 1}});
        let with = |more: Value| {
            let mut all = base.as_object().unwrap().clone();
            all.extend(more.as_object().unwrap().clone());
            json!({"spec": all})
        };
        let rows = [
            (json!({}), json!({})),
            (json!({"spec": {}}), with(json!({}))),
            (json!({"spec": {"def": null, "deep": null, "nuld": null}}), with(json!({"nuld": null}))),
            (json!({"spec": {"deep": {"b": {}}}}), with(json!({"deep": {"a": 1, "b": {"c": 2}}}))),
            (
                json!({"spec": {"m": {"k": {}, "n": null}}}),
                with(json!({"m": {"k": {"x": 3}, "n": {"y": 1, "x": 3}}})),
            ),
            (json!({"spec": {"l": ["a", null]}}), with(json!({"l": ["a", "i"]}))),
            (json!({"spec": {"deep": "text"}}), with(json!({"deep": "text"}))),
        ];
        for (before, after) in rows {
            let mut map = before.as_object().unwrap().clone();
            assert_eq!(object(&mut map, schema.root()), before != after, "{before}");
            assert_eq!(Value::Object(map.clone()), after, "{before}");
            assert!(!object(&mut map, schema.root()), "{before}: twice");
        }
    }
}
