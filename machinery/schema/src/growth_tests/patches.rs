//! Patches: each key of a patch has the same cost, independent of its effect.

use std::sync::Arc;

use portico_machinery::Object;
use serde_json::{Map, Value, json};

use super::{Row, assert_linear_time, map, names};
use crate::merge::{diagnostics, merge_patch};
use crate::model::{TypeSet, TypeSetBuilder};
use crate::{Schema, description};

fn types() -> Arc<TypeSet> {
    let packages = json!({"t": {
        "Root": {"fields": {
            "data": {"type": "{}string", "number": 1},
            "items": {"type": "[]Item", "number": 2, "patch": "merge", "mergeKey": "name"},
            "set": {"type": "[]string", "number": 3, "patch": "merge"},
        }},
        "Item": {"fields": {"name": {"type": "string", "number": 1}, "value": {"type": "string", "number": 2}}},
    }});
    let mut builder = TypeSetBuilder::default();
    let packages = serde_json::from_value(packages).unwrap();
    description::add(&mut builder, &indexmap::IndexMap::new(), packages).unwrap();
    Arc::new(builder.build().unwrap())
}

fn current(count: usize) -> Object {
    let items: Vec<Value> =
        names(count).into_iter().map(|name| json!({"name": name, "value": "v"})).collect();
    let object = json!({"data": map(count, &json!("v")), "items": items, "set": names(count)});
    Object::from_json(object.to_string().as_bytes()).unwrap()
}

fn prefixed(prefix: &str, count: usize, value: &Value) -> Map<String, Value> {
    map(count, value).into_iter().map(|(name, value)| (format!("{prefix}{name}"), value)).collect()
}

fn patches() -> Vec<Row<Value>> {
    vec![
        ("null for each key", |n| json!({"data": map(n, &Value::Null)})),
        ("another value for each key", |n| json!({"data": map(n, &json!("w"))})),
        ("null for each unknown key", |n| json!({"data": prefixed("x", n, &Value::Null)})),
        ("keys that are retained", |n| json!({"data": {"$retainKeys": names(n), "k0": "w"}})),
        ("orders of lists that are not there", |n| {
            let mut patch = prefixed("$setElementOrder/", n, &json!([]));
            patch.extend(prefixed("y", n, &json!(1)));
            Value::Object(patch)
        }),
        ("scalars that go", |n| json!({"$deleteFromPrimitiveList/set": names(n)})),
        ("elements that go", |n| {
            let removed = names(n).into_iter().map(|name| json!({"name": name, "$patch": "delete"}));
            json!({"items": removed.collect::<Vec<_>>()})
        }),
        ("elements in another order", |n| {
            let order: Vec<Value> = names(n).into_iter().rev().map(|name| json!({"name": name})).collect();
            json!({"$setElementOrder/items": order, "items": order})
        }),
    ]
}

#[test]
fn merge_patches_grow_with_their_size() {
    for (name, patch) in patches() {
        let input = |n| (current(n), patch(n).to_string().into_bytes());
        assert_linear_time(name, 1_000, input, |(current, patch)| drop(merge_patch(current, patch)));
    }
}

#[test]
fn strategic_patches_grow_with_their_size() {
    let schema = Schema::named(&types(), "t.Root").unwrap();
    for (name, patch) in patches() {
        let input = |n| (current(n), patch(n).to_string().into_bytes());
        assert_linear_time(name, 1_000, input, |(current, patch)| {
            drop(schema.strategic_merge(current, patch))
        });
    }
}

#[test]
fn diagnostics_of_operations_grow_with_their_number() {
    let operations =
        |n: usize| format!("[{}]", vec![r#"{"op":"test","op":"test"}"#; n].join(",")).into_bytes();
    assert_linear_time("operations", 1_000, operations, |patch| drop(diagnostics(patch, true)));
}

#[test]
fn deleting_keys_preserves_the_order() {
    let patched = merge_patch(&current(5), br#"{"data":{"k1":null,"k3":null,"new":"n","zz":null}}"#).unwrap();
    let keys: Vec<&str> = patched.at(&["data"]).entries().map(|(key, _)| key).collect();
    assert_eq!(keys, ["k0", "k2", "k4", "new"]);
}
