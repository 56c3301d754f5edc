//! Drops nulls that are not allowed and have no default from objects and maps. Lists keep their nulls.

use serde_json::{Map, Value};

use super::model::SchemaNode;

/// Drops nulls. Returns true if there were any.
pub(super) fn drop_nulls(map: &mut Map<String, Value>, node: &SchemaNode) -> bool {
    let mut any = false;
    map.retain(|key, value| {
        // Look up only values that are or can contain null.
        let is_dropped = match value {
            Value::Null => node.field(key).is_some_and(|child| child.drops_null()),
            Value::Object(_) | Value::Array(_) => {
                any |= node.field(key).is_some_and(|child| drop_nested(value, child));
                false
            }
            _ => false,
        };
        any |= is_dropped;
        !is_dropped
    });
    any
}

fn drop_nested(value: &mut Value, node: &SchemaNode) -> bool {
    match value {
        Value::Object(map) => drop_nulls(map, node),
        Value::Array(list) => match &node.items {
            Some(items) => list.iter_mut().fold(false, |any, item| drop_nested(item, items) | any),
            None => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::structural::Structural;

    #[test]
    fn nulls_are_dropped_unless_allowed_or_defaulted() {
        let schema = Structural::compile(&json!({"type": "object", "properties": {
            "s": {"type": "string"},
            "n": {"type": "string", "nullable": true},
            "d": {"type": "string", "default": "x"},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
            "l": {"type": "array", "items": {"type": "object", "properties": {"s": {"type": "string"}}}},
            "k": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}))
        .unwrap();
        let rows = [
            (json!({"s": null, "n": null, "d": null}), json!({"n": null, "d": null})),
            (json!({"m": {"a": null, "b": "c"}}), json!({"m": {"b": "c"}})),
            (json!({"l": [null, {"s": null}]}), json!({"l": [null, {}]})),
            (json!({"k": {"x": null}}), json!({"k": {"x": null}})),
        ];
        for (before, after) in rows {
            let mut map = before.as_object().unwrap().clone();
            assert_eq!(drop_nulls(&mut map, schema.root()), before != after, "{before}");
            assert_eq!(Value::Object(map.clone()), after);
            assert!(!drop_nulls(&mut map, schema.root()));
        }
    }
}
