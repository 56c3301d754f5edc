//! Objects before and after pruning.

use serde_json::json;

use super::*;
use crate::structural::Structural;

fn schema() -> Value {
    let specified = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    json!({"type": "object", "properties": {
        "a": {"type": "string"},
        "o": specified,
        "m": {"type": "object", "additionalProperties": specified},
        "any": {"type": "object", "additionalProperties": true},
        "no": {"type": "object", "additionalProperties": false},
        "l": {"type": "array", "items": {"type": "array", "items": specified}},
        "keep": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"known": specified}},
        "keeps": {"x-kubernetes-preserve-unknown-fields": true, "type": "array", "items": specified},
        "emb": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": specified}},
    }})
}

#[test]
fn unspecified_fields_are_dropped_and_listed() {
    let rows = [
        (json!({"a": "x", "zz": 1, "b": {"c": 1}}), json!({"a": "x"}), vec!["b", "zz"]),
        (
            json!({"apiVersion": "v", "kind": "K", "metadata": {"x": 1}}),
            json!({"apiVersion": "v", "kind": "K", "metadata": {"x": 1}}),
            vec![],
        ),
        (
            json!({"o": {"a": 1, "metadata": {}, "kind": 1}}),
            json!({"o": {"a": 1}}),
            vec!["o.kind", "o.metadata"],
        ),
        (
            json!({"m": {"x.y": {"a": 1, "b": 2}, "z": 3}}),
            json!({"m": {"x.y": {"a": 1}, "z": 3}}),
            vec!["m.x.y.b"],
        ),
        (
            json!({"any": {"s": 1, "o": {"x": 1}, "l": [{"y": 1}, 2]}}),
            json!({"any": {"s": 1, "o": {}, "l": [{}, 2]}}),
            vec!["any.l[0].y", "any.o.x"],
        ),
        (json!({"no": {"s": 1, "o": {"x": 1}}}), json!({"no": {"s": 1, "o": {}}}), vec!["no.o.x"]),
        (json!({"l": [[{"a": 1}, {"b": 1}], 5]}), json!({"l": [[{"a": 1}, {}], 5]}), vec!["l[0][1].b"]),
        (
            json!({"keep": {"x": {"y": [{"z": 1}]}, "known": {"a": 1, "b": 2}}}),
            json!({"keep": {"x": {"y": [{"z": 1}]}, "known": {"a": 1}}}),
            vec!["keep.known.b"],
        ),
        (json!({"keeps": [{"a": 1, "b": {"c": 2}}]}), json!({"keeps": [{"a": 1, "b": {"c": 2}}]}), vec![]),
        (
            json!({"emb": {"apiVersion": "v1", "kind": "K", "metadata": {"q": 1}, "spec": {"b": 1}, "status": 1}}),
            json!({"emb": {"apiVersion": "v1", "kind": "K", "metadata": {"q": 1}, "spec": {}}}),
            vec!["emb.spec.b", "emb.status"],
        ),
        (json!({"o": "scalar", "a": {"x": 1}}), json!({"o": "scalar", "a": {}}), vec!["a.x"]),
    ];
    let schema = Structural::compile(&schema()).unwrap();
    for (before, after, paths) in rows {
        let mut map = before.as_object().unwrap().clone();
        let pruned = prune_object(&mut map, schema.root(), true);
        assert_eq!(Value::Object(map.clone()), after, "{before}");
        assert_eq!(pruned.paths, paths, "{before}");
        assert_eq!(pruned.has_changed, before != after);
        assert!(!prune_object(&mut map, schema.root(), false).has_changed, "{before}: pruned again");
    }
}
