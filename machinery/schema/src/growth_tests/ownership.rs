//! Field ownership: a thousand managers, and objects with many fields.

use std::collections::BTreeMap;

use portico_machinery::{Node, Object};
use serde_json::{Value, json};

use super::{chain, custom, grows, map, names};
use crate::Schema;
use crate::apply::{Comparison, Filter, Owned, Unconverted, Versions, update};
use crate::fields::{PathElement, Set};
use crate::managed::{Managed, Manager};

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
fn managers_that_become_one_cost_what_they_own() {
    let managed = |n| Managed::read(&owned_by_many("Update", n)).unwrap();
    grows("updaters", 500, managed, |managed| {
        let mut managed = managed.clone();
        managed.cap_updaters(10, "ancient-changes");
        let mut object = Object::default();
        managed.write(&mut object);
        assert_eq!(object.at(&["metadata", "managedFields"]).len(), 10);
    });
}

struct One(Schema, Filter);

impl Versions for One {
    fn schema(&self, _: &str) -> Option<&Schema> {
        Some(&self.0)
    }

    fn convert(&self, object: &Object, _: &str, _: &str) -> Result<Object, Unconverted> {
        Ok(object.clone())
    }

    fn filter(&self, _: &str) -> &Filter {
        &self.1
    }
}

/// Previous state without managed fields, new state, owners of the previous state, and the differences.
type Change = (Object, Object, BTreeMap<Manager, Owned>, Comparison);

fn change(versions: &One, mut old: Object, spec: Value) -> Change {
    let owners = Managed::read(&old).unwrap().owners;
    old.remove(&["metadata", "managedFields"]);
    let mut new = old.clone();
    new.put(&["spec"], Node(spec));
    let changed = versions.0.compare(&old, &new).unwrap();
    (old, new, owners, changed)
}

#[test]
fn a_change_of_everything_costs_each_manager_what_it_owns() {
    let versions = One(schema(), Filter::default());
    let input = |n| change(&versions, owned_by_many("Apply", n), map(n, &json!("w")).into());
    grows("appliers", 500, input, |(old, new, owners, changed)| {
        let mut owners = owners.clone();
        update(&versions, "g/v1", (old, new), changed, &mut owners).unwrap();
        assert!(owners.is_empty());
    });
}

#[test]
fn deep_fields_cost_what_they_hold() {
    let versions = One(
        custom(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        Filter::default(),
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
    grows("owners of deep fields", 500, input, |(old, new, owners, changed)| {
        let mut owners = owners.clone();
        update(&versions, "g/v1", (old, new), changed, &mut owners).unwrap();
        drop(versions.0.compare(old, new).unwrap());
        drop(versions.0.merge_applied(old, new).unwrap());
        drop(versions.0.without(old, &versions.0.fields_of(new)));
    });
}

#[test]
fn sets_of_fields_grow_with_their_size() {
    let reversed = |n: usize| {
        let fields = names(n).into_iter().rev().map(|name| (format!("f:{name}"), json!({})));
        Value::Object(fields.collect())
    };
    grows("reading in reverse", 1_000, reversed, |json| drop(Set::from_json(json)));
    let many = |n| names(n).iter().map(|name| Set::of_fields([name.as_str()])).collect::<Vec<_>>();
    grows("joining many", 1_000, many, |sets| {
        assert!(Set::union_of(sets.clone()).has(&[&PathElement::field("k0")]));
    });
}

#[test]
fn few_in_many_are_what_is_in_both() {
    let many = Set::of_fields(names(1_000).iter().map(String::as_str));
    let few = Set::of_fields(["k1", "k999", "other", "k5.below"]);
    assert_eq!(few.intersection(&many), Set::of_fields(["k1", "k999"]));
    assert_eq!(many.intersection(&few), Set::of_fields(["k1", "k999"]));
    let mut left = few.clone();
    left.subtract(&many);
    assert_eq!(left, Set::of_fields(["other", "k5.below"]));
    assert_eq!(left, few.difference(&many));
}
