//! Defaults: sets the default of absent fields, and of nulls that are not nullable, in all values that exist.

use serde_json::{Map, Value};

use super::model::SchemaNode;

/// Bytes that defaults add to one custom resource.
///
/// An object of 100,000 empty elements whose schema has a thousand defaults for each would take all memory.
///
/// Limit (Definitions and schemas, bytes): 400 on a write; a read shows the remaining fields without defaults.
pub(super) const MAX_DEFAULT_BYTES: usize = 8 * 1024 * 1024;

/// Result of setting defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DefaultingResult {
    /// True if a value changed.
    pub has_changed: bool,
    /// True if [`MAX_DEFAULT_BYTES`] was exceeded: the remaining fields have no defaults.
    pub exceeded: bool,
}

/// Sets the defaults of an object.
pub(super) fn set_defaults(map: &mut Map<String, Value>, node: &SchemaNode) -> DefaultingResult {
    let mut fill = Defaulter { remaining_bytes: MAX_DEFAULT_BYTES, exceeded: false };
    let has_changed = fill.object(map, node);
    DefaultingResult { has_changed, exceeded: fill.exceeded }
}

struct Defaulter {
    remaining_bytes: usize,
    exceeded: bool,
}

impl Defaulter {
    fn object(&mut self, map: &mut Map<String, Value>, node: &SchemaNode) -> bool {
        if !node.subtree_flags.defaults {
            return false;
        }
        let mut any = false;
        for (name, child) in node.defaulted_properties() {
            let Some(default) = &child.default else { continue };
            match map.get_mut(&**name) {
                Some(existing) if is_unset(existing, child) => any |= self.set(existing, default),
                Some(_) => {}
                None if self.reserve(name.len() + approximate_bytes(default)) => {
                    map.insert(name.to_string(), default.clone());
                    any = true;
                }
                None => break,
            }
        }
        for (key, value) in map.iter_mut() {
            any |= match node.property(key) {
                Some(child) => self.default_children(value, child),
                None => {
                    let child = node.additional.schema();
                    child
                        .is_some_and(|child| self.replace(value, child) | self.default_children(value, child))
                }
            };
        }
        any
    }

    fn default_children(&mut self, value: &mut Value, node: &SchemaNode) -> bool {
        match (value, &node.items) {
            (Value::Object(map), _) => self.object(map, node),
            (Value::Array(list), Some(items)) if node.subtree_flags.defaults => {
                list.iter_mut().fold(false, |any, item| {
                    self.replace(item, items) | self.default_children(item, items) | any
                })
            }
            _ => false,
        }
    }

    /// Replaces a null that is not nullable with the default.
    fn replace(&mut self, value: &mut Value, node: &SchemaNode) -> bool {
        match &node.default {
            Some(default) if is_unset(value, node) => self.set(value, default),
            _ => false,
        }
    }

    fn set(&mut self, value: &mut Value, default: &Value) -> bool {
        let fits = self.reserve(approximate_bytes(default));
        if fits {
            *value = default.clone();
        }
        fits
    }

    fn reserve(&mut self, bytes: usize) -> bool {
        match self.remaining_bytes.checked_sub(bytes) {
            Some(left) if !self.exceeded => self.remaining_bytes = left,
            _ => self.exceeded = true,
        }
        !self.exceeded
    }
}

/// Returns the approximate size of a value in memory.
fn approximate_bytes(value: &Value) -> usize {
    const BYTES_PER_VALUE: usize = 32;
    BYTES_PER_VALUE
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(approximate_bytes).sum(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| BYTES_PER_VALUE + key.len() + approximate_bytes(value)).sum()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

fn is_unset(value: &Value, node: &SchemaNode) -> bool {
    value.is_null() && !node.nullable
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::structural::Structural;

    #[test]
    fn defaults_fill_absent_fields_of_present_objects() {
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
            assert_eq!(set_defaults(&mut map, schema.root()).has_changed, before != after, "{before}");
            assert_eq!(Value::Object(map.clone()), after, "{before}");
            assert!(!set_defaults(&mut map, schema.root()).has_changed, "{before}: defaulted again");
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
        assert_eq!(
            set_defaults(&mut map, schema.root()),
            DefaultingResult { has_changed: true, exceeded: true }
        );
        assert!(Value::Object(map).to_string().len() < 2 * MAX_DEFAULT_BYTES);
    }
}
