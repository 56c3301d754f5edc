//! Correlation: finds the old value that corresponds to a value of the new object, and compares both.
//!
//! Fields correlate by name, entries of maps by key, elements of `list-type: map` by their keys; elements of other lists do
//! not correlate. Values that the schema does not describe do not correlate. Used by ratcheting and transition rules.

use std::cell::OnceCell;
use std::collections::HashMap;

use serde_json::{Map, Value};

use super::model::{JsonType, SchemaNode};
use super::object_or_value::ObjectOrValue;
use crate::model::ListType;

/// Value and the corresponding old value.
#[derive(Debug)]
pub struct CorrelatedPair<'a> {
    new: ObjectOrValue<'a>,
    old: ObjectOrValue<'a>,
    node: &'a SchemaNode,
    /// Elements of the old list by their keys, built at the first use.
    by_key: OnceCell<HashMap<Vec<&'a Value>, &'a Value>>,
}

impl<'a> CorrelatedPair<'a> {
    /// Creates a pair of two states of a whole object.
    #[must_use]
    pub fn of_objects(
        new: &'a Map<String, Value>,
        old: &'a Map<String, Value>,
        root: &'a SchemaNode,
    ) -> Self {
        Self {
            new: ObjectOrValue::Fields(new),
            old: ObjectOrValue::Fields(old),
            node: root,
            by_key: OnceCell::new(),
        }
    }

    /// Creates a pair of two values that a node describes.
    #[must_use]
    pub fn of_values(new: &'a Value, old: &'a Value, node: &'a SchemaNode) -> Self {
        Self { new: ObjectOrValue::Value(new), old: ObjectOrValue::Value(old), node, by_key: OnceCell::new() }
    }

    /// Returns the old value, or `None` for a whole object.
    #[must_use]
    pub fn old(&self) -> Option<&'a Value> {
        self.old.value()
    }

    /// Returns the schema of both values.
    #[must_use]
    pub fn node(&self) -> &'a SchemaNode {
        self.node
    }

    /// Returns the pair of a field, or of the entry under a key.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<Self> {
        let (new, old) = (self.new.fields()?.get(name)?, self.old.fields()?.get(name)?);
        Some(Self::of_values(new, old, self.node.field(name)?))
    }

    /// Returns the pair of the element at this index of the new list and the old element with the same keys.
    #[must_use]
    pub fn index(&self, index: usize) -> Option<Self> {
        let new = self.new.list()?.get(index)?;
        let old = self.old_element(new)?;
        Some(Self::of_values(new, old, self.node.items.as_ref()?))
    }

    fn is_keyed(&self) -> bool {
        self.node.list_type == Some(ListType::Map)
            && self.node.ty == Some(JsonType::Array)
            && !self.node.list_keys.is_empty()
    }

    fn old_element(&self, new: &Value) -> Option<&'a Value> {
        if !self.is_keyed() {
            return None;
        }
        let old = self.old.list()?;
        let by_key = self.by_key.get_or_init(|| {
            let mut found = HashMap::with_capacity(old.len());
            for item in old {
                if let Some(keys) = keys(item, &self.node.list_keys) {
                    // The first of several elements with the same keys.
                    found.entry(keys).or_insert(item);
                }
            }
            found
        });
        by_key.get(&keys(new, &self.node.list_keys)?).copied()
    }

    /// True if both values are equal. As upstream, the order of elements in a keyed list is ignored, and values that the schema
    /// does not describe are never equal.
    #[must_use]
    pub fn is_same(&self) -> bool {
        match (self.new.fields(), self.old.fields(), self.new.list(), self.old.list()) {
            (Some(new), Some(old), ..) => {
                new.len() == old.len()
                    && new.keys().all(|key| self.key(key).is_some_and(|pair| pair.is_same()))
            }
            (.., Some(new), Some(old)) => new.len() == old.len() && self.same_lists(new, old),
            _ => match (self.new, self.old) {
                (ObjectOrValue::Value(new), ObjectOrValue::Value(old)) => new == old,
                _ => false,
            },
        }
    }

    fn same_lists(&self, new: &[Value], old: &[Value]) -> bool {
        if !self.is_keyed() {
            return new == old;
        }
        (0..new.len()).all(|index| self.index(index).is_some_and(|pair| pair.is_same()))
    }
}

/// Returns the keys of an element of a keyed list. Returns `None` unless all keys are present and scalar.
fn keys<'v>(item: &'v Value, names: &[Box<str>]) -> Option<Vec<&'v Value>> {
    let scalar = |value: &&Value| value.is_string() || value.is_number() || value.is_boolean();
    names.iter().map(|name| item.get(&**name).filter(scalar)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::structural::Structural;

    #[test]
    fn values_correlate_as_the_schema_says() {
        let item =
            json!({"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}});
        let schema = Structural::compile(&json!({"type": "object", "properties": {
            "m": {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
            "a": {"type": "array", "items": item},
            "o": {"type": "object", "additionalProperties": {"type": "integer"}},
            "p": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}))
        .unwrap();
        let old =
            json!({"m": [{"k": "x", "v": 1}, {"k": "y"}], "a": [{"k": "x"}], "o": {"q": 1}, "p": {"z": 1}});
        let new = json!({"m": [{"k": "y"}, {"k": "x", "v": 2}, {"k": "n"}], "a": [{"k": "x"}], "o": {"q": 1}, "p": {"z": 1}});
        let pair =
            CorrelatedPair::of_objects(new.as_object().unwrap(), old.as_object().unwrap(), schema.root());
        let list = pair.key("m").unwrap();
        assert_eq!(list.index(0).unwrap().old(), Some(&json!({"k": "y"})));
        assert!(list.index(0).unwrap().is_same());
        assert_eq!(list.index(1).unwrap().key("v").unwrap().old(), Some(&json!(1)));
        assert!(!list.index(1).unwrap().is_same());
        assert!(list.index(2).is_none() && list.index(3).is_none());
        let atomic = pair.key("a").unwrap();
        assert!(atomic.index(0).is_none() && atomic.is_same());
        assert!(pair.key("o").unwrap().key("q").unwrap().is_same());
        let preserved = pair.key("p").unwrap();
        assert!(preserved.key("z").is_none() && !preserved.is_same());
        assert!(pair.key("absent").is_none() && !pair.is_same());
    }

    #[test]
    fn a_keyed_list_in_another_order_is_the_same() {
        let schema = Structural::compile(&json!({"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k", "p"], "items": {"type": "object", "properties": {
                "k": {"type": "string"}, "p": {"type": "integer"}}}}))
        .unwrap();
        let (new, old) = (
            json!([{"k": "a", "p": 1}, {"k": "a", "p": 2}]),
            json!([{"k": "a", "p": 2}, {"k": "a", "p": 1}]),
        );
        assert!(CorrelatedPair::of_values(&new, &old, schema.root()).is_same());
        let without = json!([{"k": "a"}, {"k": "a", "p": 2}]);
        assert!(!CorrelatedPair::of_values(&without, &without, schema.root()).is_same());
    }
}
