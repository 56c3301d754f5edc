//! Apply with structural schemas, compared with the managed fields that kube-apiserver 1.36.3 recorded.

use portico_machinery::Object;
use serde_json::{Map, Value, json};

use crate::structural::object_meta_for_tests as object_meta;
use crate::{Schema, Structural};

const RECORDED: &str = include_str!("../testdata/structural-apply.json");

fn schema(props: &Value) -> Schema {
    Schema::structural(Structural::compile(props).unwrap(), object_meta())
}

fn object(value: &Value) -> Object {
    Object::from_map(value.as_object().unwrap().clone())
}

#[test]
fn fields_are_owned_and_type_mismatches_reported_as_upstream_does() {
    let recording: Value = serde_json::from_str(RECORDED).unwrap();
    let schema = schema(&recording["schema"]);
    for row in recording["rows"].as_array().unwrap() {
        let config = object(&json!({"spec": row["spec"]}));
        let checked = schema.check_applied(&config);
        if let Some(misfit) = row.get("misfit") {
            let error = checked.unwrap_err().to_string();
            assert!(error.starts_with(misfit.as_str().unwrap()), "{error}\nis not {misfit}");
            continue;
        }
        checked.unwrap();
        if let Some(fields) = row.get("fields") {
            let mut set = schema.fields_of(&config).to_json();
            set.sort_all_objects();
            let mut fields = fields.clone();
            fields.sort_all_objects();
            assert_eq!(set, fields, "{}", row["spec"]);
        }
    }
}

#[test]
fn configurations_are_merged_according_to_the_schema() {
    let item = json!({"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}});
    let schema = schema(&json!({"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item},
        "list": {"type": "array", "items": item},
        "atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
        "keep": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}));
    let live = json!({"metadata": {"name": "x", "labels": {"a": "1"}, "finalizers": ["a/b"]}, "set": ["a"],
        "map": [{"k": "x", "v": 1}], "list": [{"k": "x"}], "atomic": {"a": "1"}, "keep": {"m": {"a": 1}, "l": [1]}});
    let config = json!({"metadata": {"labels": {"b": "2"}, "finalizers": ["c/d"]}, "set": ["b"],
        "map": [{"k": "y"}, {"k": "x", "v": 2}], "list": [{"k": "y"}], "atomic": {"b": "2"}, "keep": {"m": {"b": 2}, "l": [2]}});
    let merged = schema.merge_applied(&object(&live), &object(&config)).unwrap();
    let want = json!({"metadata": {"name": "x", "labels": {"a": "1", "b": "2"}, "finalizers": ["a/b", "c/d"]},
        "set": ["a", "b"], "map": [{"k": "y"}, {"k": "x", "v": 2}], "list": [{"k": "y"}],
        "atomic": {"b": "2"}, "keep": {"m": {"a": 1, "b": 2}, "l": [2]}});
    assert_eq!(Value::Object(merged.map().clone()), want);
    let comparison = schema.compare(&object(&live), &merged).unwrap();
    let changed = comparison.clone().into_changed().to_json();
    for path in
        ["/f:set/v:\"b\"", "/f:map/k:{\"k\":\"y\"}", "/f:list", "/f:atomic", "/f:keep/f:l", "/f:keep/f:m/f:b"]
    {
        assert!(changed.pointer(path).is_some(), "{path} in {changed}");
    }
    let left = schema.without_fields(&merged, &comparison.added);
    assert_eq!(left.map().get("set"), Some(&json!(["a"])));
    let with_null = object(&json!({"keep": {"n": null}}));
    let added = schema.compare(&Object::default(), &with_null).unwrap().added.to_json();
    assert!(added.pointer("/f:keep/f:n").is_some(), "{added}");
    assert!(schema.compare(&merged, &merged).unwrap().is_empty());
    assert!(schema.check_applied(&Object::from_map(Map::new())).is_ok());
}
