//! Defaults: sets the default of absent fields, and of nulls that are not nullable, in all values that exist.

use serde_json::{Map, Value};

use super::model::Node;

/// Bytes that defaults add to one custom resource.
///
/// An object of 100,000 empty elements whose schema has a thousand defaults for each would take all memory.
///
/// Limit (Definitions and schemas, bytes): 400 on a write; a read shows the remaining fields without defaults.
pub(super) const MAX_DEFAULT_BYTES: usize = 8 * 1024 * 1024;

/// Result of setting defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Defaulted {
    /// True if a value changed.
    pub any: bool,
    /// True if [`MAX_DEFAULT_BYTES`] was exceeded: the remaining fields have no defaults.
    pub exceeded: bool,
}

/// Sets the defaults of an object.
pub(super) fn object(map: &mut Map<String, Value>, node: &Node) -> Defaulted {
    let mut fill = Fill { left: MAX_DEFAULT_BYTES, exceeded: false };
    let any = fill.object(map, node);
    Defaulted { any, exceeded: fill.exceeded }
}

struct Fill {
    left: usize,
    exceeded: bool,
}

impl Fill {
    fn object(&mut self, map: &mut Map<String, Value>, node: &Node) -> bool {
        if !node.marks.defaults {
            return false;
        }
        let mut any = false;
        for (name, below) in node.defaulted() {
            let Some(default) = &below.default else { continue };
            match map.get_mut(&**name) {
                Some(held) if is_unset(held, below) => any |= self.set(held, default),
                Some(_) => {}
                None if self.take(name.len() + weight(default)) => {
                    map.insert(name.to_string(), default.clone());
                    any = true;
                }
                None => break,
            }
        }
        for (key, value) in map.iter_mut() {
            any |= match node.property(key) {
                Some(below) => self.inside(value, below),
                None => {
                    let below = node.additional.schema();
                    below.is_some_and(|below| self.replace(value, below) | self.inside(value, below))
                }
            };
        }
        any
    }

    fn inside(&mut self, value: &mut Value, node: &Node) -> bool {
        match (value, &node.items) {
            (Value::Object(map), _) => self.object(map, node),
            (Value::Array(list), Some(items)) if node.marks.defaults => list
                .iter_mut()
                .fold(false, |any, item| self.replace(item, items) | self.inside(item, items) | any),
            _ => false,
        }
    }

    /// Replaces a null that is not nullable with the default.
    fn replace(&mut self, value: &mut Value, node: &Node) -> bool {
        match &node.default {
            Some(default) if is_unset(value, node) => self.set(value, default),
            _ => false,
        }
    }

    fn set(&mut self, value: &mut Value, default: &Value) -> bool {
        let fits = self.take(weight(default));
        if fits {
            *value = default.clone();
        }
        fits
    }

    fn take(&mut self, bytes: usize) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) if !self.exceeded => self.left = left,
            _ => self.exceeded = true,
        }
        !self.exceeded
    }
}

/// Returns the approximate size of a value in memory.
fn weight(value: &Value) -> usize {
    const EACH: usize = 32;
    EACH + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields.iter().map(|(key, value)| EACH + key.len() + weight(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
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
            assert_eq!(object(&mut map, schema.root()).any, before != after, "{before}");
            assert_eq!(Value::Object(map.clone()), after, "{before}");
            assert!(!object(&mut map, schema.root()).any, "{before}: twice");
        }
    }

    #[test]
    fn defaults_add_a_bounded_number_of_bytes() {
        let defaults: Map<String, Value> =
            (0..500).map(|n| (format!("p{n}"), json!({"type": "string", "default": "d"}))).collect();
        let schema = Structural::compile(&json!({"type": "object", "properties": {"l": {
            "type": "array", "items": {"type": "object", "properties": defaults},
        }}}))
        .unwrap();
        let mut map = Map::from_iter([("l".to_owned(), vec![json!({}); 10_000].into())]);
        assert_eq!(object(&mut map, schema.root()), Defaulted { any: true, exceeded: true });
        assert!(Value::Object(map).to_string().len() < 2 * MAX_DEFAULT_BYTES);
    }
}
