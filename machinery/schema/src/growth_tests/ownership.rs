//! Field ownership: a thousand managers, and objects with many fields.

use std::collections::BTreeMap;

use portico_machinery::{Node, Object};
use serde_json::{Value, json};

use super::{assert_linear_time, chain, custom, map, names};
use crate::Schema;
use crate::apply::{Comparison, ConversionError, FieldFilter, OwnedFields, Versions, update_owners};
use crate::fields::{FieldSet, PathElement};
use crate::managed::{ManagedFields, Manager};

fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
    json!({"manager": manager, "operation": operation, "apiVersion": "g/v1", "fieldsType": "FieldsV1", "fieldsV1": fields,
        "time": "2024-01-01T00:00:00Z"})
}

/// Object with `fields` fields, each owned by a separate manager.
fn owned_by_many(operation: &str, fields: usize) -> Object {
    let entries: Vec<Value> = names(fields)
        .iter()
        .map(|name| entry(name, operation, &json!({"f:spec": {format!("f:{name}"): {}}})))
        .collect();
    let object = json!({"apiVersion": "g/v1", "kind": "Kind", "metadata": {"name": "n", "managedFields": entries},
        "spec": map(fields, &json!("v"))});
    Object::from_json(object.to_string().as_bytes()).unwrap()
}

fn schema() -> Schema {
    custom(&json!({"type": "object", "additionalProperties": {"type": "string"}}))
}

#[test]
fn merging_managers_is_linear_in_their_fields() {
    let managed = |n| ManagedFields::read(&owned_by_many("Update", n)).unwrap();
    assert_linear_time("updaters", 500, managed, |managed| {
        let mut managed = managed.clone();
        managed.cap_updaters(10, "ancient-changes");
        let mut object = Object::default();
        managed.write(&mut object);
        assert_eq!(object.at(&["metadata", "managedFields"]).len(), 10);
    });
}

struct SingleSchema(Schema, FieldFilter);

impl Versions for SingleSchema {
    fn schema(&self, _: &str) -> Option<&Schema> {
        Some(&self.0)
    }

    fn convert(&self, object: &Object, _: &str, _: &str) -> Result<Object, ConversionError> {
        Ok(object.clone())
    }

    fn filter(&self, _: &str) -> &FieldFilter {
        &self.1
    }
}

/// Previous state without managed fields, new state, owners of the previous state, and the differences.
type Change = (Object, Object, BTreeMap<Manager, OwnedFields>, Comparison);

fn change(versions: &SingleSchema, mut old: Object, spec: Value) -> Change {
    let owners = ManagedFields::read(&old).unwrap().owners;
    old.remove(&["metadata", "managedFields"]);
    let mut new = old.clone();
    new.put(&["spec"], Node(spec));
    let changed = versions.0.compare(&old, &new).unwrap();
    (old, new, owners, changed)
}

#[test]
fn a_change_of_all_fields_is_linear_in_owned_fields() {
    let versions = SingleSchema(schema(), FieldFilter::default());
    let input = |n| change(&versions, owned_by_many("Apply", n), map(n, &json!("w")).into());
    assert_linear_time("appliers", 500, input, |(old, new, owners, changed)| {
        let mut owners = owners.clone();
        update_owners(&versions, "g/v1", (old, new), changed, &mut owners).unwrap();
        assert!(owners.is_empty());
    });
}

#[test]
fn deep_fields_are_linear_in_their_size() {
    let versions = SingleSchema(
        custom(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        FieldFilter::default(),
    );
    let deep = |n: usize, leaf: Value| map(50, &chain(n / 8, leaf, |inner| json!({"a": inner})));
    let input = |n| {
        let spec = Value::Object(deep(n, json!("v")));
        let fields = |spec: &Value| {
            let object = json!({"apiVersion": "g/v1", "kind": "Kind", "spec": spec});
            versions.0.fields_of(&Object::from_json(object.to_string().as_bytes()).unwrap()).to_json()
        };
        let entries: Vec<Value> =
            ["a", "b", "c"].into_iter().map(|name| entry(name, "Apply", &fields(&spec))).collect();
        let object = json!({"apiVersion": "g/v1", "kind": "Kind",
            "metadata": {"name": "n", "managedFields": entries}, "spec": spec});
        let old = Object::from_json(object.to_string().as_bytes()).unwrap();
        change(&versions, old, Value::Object(deep(n, json!("w"))))
    };
    assert_linear_time("owners of deep fields", 500, input, |(old, new, owners, changed)| {
        let mut owners = owners.clone();
        update_owners(&versions, "g/v1", (old, new), changed, &mut owners).unwrap();
        drop(versions.0.compare(old, new).unwrap());
        drop(versions.0.merge_applied(old, new).unwrap());
        drop(versions.0.without_fields(old, &versions.0.fields_of(new)));
    });
}

#[test]
fn sets_of_fields_grow_with_their_size() {
    let reversed = |n: usize| {
        let fields = names(n).into_iter().rev().map(|name| (format!("f:{name}"), json!({})));
        Value::Object(fields.collect())
    };
    assert_linear_time("reading in reverse", 1_000, reversed, |json| drop(FieldSet::from_json(json)));
    let many =
        |n| names(n).iter().map(|name| FieldSet::from_dotted_paths([name.as_str()])).collect::<Vec<_>>();
    assert_linear_time("joining many", 1_000, many, |sets| {
        assert!(FieldSet::union_all(sets.clone()).contains(&[&PathElement::field("k0")]));
    });
}

#[test]
fn intersection_with_a_large_set_contains_the_common_fields() {
    let many = FieldSet::from_dotted_paths(names(1_000).iter().map(String::as_str));
    let few = FieldSet::from_dotted_paths(["k1", "k999", "other", "k5.below"]);
    assert_eq!(few.intersection(&many), FieldSet::from_dotted_paths(["k1", "k999"]));
    assert_eq!(many.intersection(&few), FieldSet::from_dotted_paths(["k1", "k999"]));
    let mut left = few.clone();
    left.subtract(&many);
    assert_eq!(left, FieldSet::from_dotted_paths(["other", "k5.below"]));
    assert_eq!(left, few.difference(&many));
}
