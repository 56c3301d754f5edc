//! API object as JSON: decoded once for a write, and read through a cursor that knows its field path.
//!
//! Only this module and the schema engine use `serde_json::Value`. All other code uses an [`Object`], a [`Cursor`] into it, or an
//! opaque [`Node`] that is moved from one object to another.

mod cursor;
mod edit;
mod go;
pub mod json_path;
mod metadata;
mod numbers;
mod order;
mod printed;
mod read;

pub use cursor::{Cursor, find_field};
pub use go::{Float, GoValue, escape_html};
pub use json_path::JsonPath;
pub use metadata::OwnerReference;
pub use numbers::{step_json, to_go_json};
pub use order::sort_keys;
pub use portico_gostd::json::go_type;
pub(crate) use printed::go_json;
pub use printed::{MAX_PRINTED_BYTES, Printed, cut, cut_at};
pub use read::{MAX_DEPTH, MAX_READ_DEPTH, is_deeper, value_from_json};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::gvk::{GroupVersion, GroupVersionKind};

/// Opaque JSON value.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Node(pub Value);

/// Collects values into a list.
impl FromIterator<Node> for Node {
    fn from_iter<I: IntoIterator<Item = Node>>(nodes: I) -> Self {
        Self(nodes.into_iter().map(|node| node.0).collect())
    }
}

/// API object: a JSON map with preserved key order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object(Map<String, Value>);

/// Error for bytes that are not a JSON object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotAnObject {
    /// The bytes are not JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// The JSON is a list or a scalar.
    #[error("json: cannot unmarshal {0} into an object")]
    Type(&'static str),
}

impl Object {
    /// Parses JSON. If a key is duplicated, the last value wins (the schema engine implements strict decoding).
    ///
    /// # Errors
    /// [`NotAnObject`].
    pub fn from_json(bytes: &[u8]) -> Result<Self, NotAnObject> {
        Self::from_node(Node(value_from_json(bytes)?))
    }

    /// Converts a value to an object.
    ///
    /// # Errors
    /// [`NotAnObject::Type`].
    pub fn from_node(node: Node) -> Result<Self, NotAnObject> {
        match node.0 {
            Value::Object(map) => Ok(Self(map)),
            Value::Null => Err(NotAnObject::Type("null")),
            Value::Bool(_) => Err(NotAnObject::Type("bool")),
            Value::Number(_) => Err(NotAnObject::Type("number")),
            Value::String(_) => Err(NotAnObject::Type("string")),
            Value::Array(_) => Err(NotAnObject::Type("array")),
        }
    }

    /// Creates an empty object of this kind.
    #[must_use]
    pub fn new(kind: &GroupVersionKind) -> Self {
        let mut object = Self::default();
        object.set(&["kind"], &kind.kind);
        object.set(&["apiVersion"], kind.group_version().to_string());
        object
    }

    /// Encodes the object as compact JSON, without a trailing newline and without optional escapes.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        numbers::object_json(&self.0)
    }

    /// Returns the underlying map, for the schema engine.
    #[must_use]
    pub fn map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Returns the underlying map, for the schema engine.
    pub fn map_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }

    /// Creates an object from a map, for the schema engine.
    #[must_use]
    pub fn from_map(map: Map<String, Value>) -> Self {
        Self(map)
    }

    /// Returns a copy of the object as a node.
    #[must_use]
    pub fn to_node(&self) -> Node {
        Node(Value::Object(self.0.clone()))
    }

    /// Converts the object to a node.
    #[must_use]
    pub fn into_node(self) -> Node {
        Node(Value::Object(self.0))
    }

    /// Returns a cursor at the root.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::root(&self.0)
    }

    /// Returns a cursor at these nested fields.
    #[must_use]
    pub fn at<'a>(&'a self, path: &[&'a str]) -> Cursor<'a> {
        path.iter().fold(self.cursor(), |cursor, field| cursor.field(field))
    }

    /// Returns the string at a dotted path, or an empty string if it is absent.
    #[must_use]
    pub fn str_at(&self, path: &str) -> &str {
        let mut names = path.split('.');
        let first = names.next().and_then(|name| self.0.get(name));
        names.fold(first, |value, name| value?.get(name)).and_then(Value::as_str).unwrap_or_default()
    }

    /// Sets a nested field, and creates the maps on its path.
    pub fn set(&mut self, path: &[&str], value: impl Serialize) {
        // All values that Portico sets (strings, numbers, plain structs) can be encoded.
        self.put(path, Node(serde_json::to_value(value).unwrap_or_default()));
    }

    /// Sets a nested field to a node, and creates the maps on its path; parents that are not maps are replaced.
    pub fn put(&mut self, path: &[&str], node: Node) {
        let Some((last, parents)) = path.split_last() else { return };
        let mut map = &mut self.0;
        for field in parents {
            let slot = map.entry(*field).or_insert(Value::Null);
            if !slot.is_object() {
                *slot = Value::Object(Map::new());
            }
            let Value::Object(next) = slot else { return };
            map = next;
        }
        map.insert((*last).to_owned(), node.0);
    }

    /// Sorts all keys at all levels.
    pub fn sort_keys(&mut self) {
        order::sort_map(&mut self.0);
    }

    /// Returns a copy of a nested field.
    #[must_use]
    pub fn get(&self, path: &[&str]) -> Option<Node> {
        self.at(path).node()
    }

    /// Removes a nested field and returns its value. Preserves the order of the other keys.
    pub fn remove(&mut self, path: &[&str]) -> Option<Node> {
        let (last, parents) = path.split_last()?;
        let mut map = &mut self.0;
        for field in parents {
            map = map.get_mut(*field)?.as_object_mut()?;
        }
        map.shift_remove(*last).map(Node)
    }

    /// Returns a copy of the object in a top-level field, or `None` if the field is not an object.
    #[must_use]
    pub fn object_at(&self, field: &str) -> Option<Self> {
        self.0.get(field).and_then(Value::as_object).cloned().map(Self)
    }

    /// Copies a nested field from another object, or removes it if the other object does not have it.
    pub fn copy_from(&mut self, other: &Self, path: &[&str]) {
        match other.get(path) {
            Some(node) => self.put(path, node),
            None => {
                self.remove(path);
            }
        }
    }

    /// Changes the map at a nested field in place, if the field is a map.
    pub fn edit(&mut self, path: &[&str], change: impl FnOnce(&mut Self)) {
        if let Some(slot) = self.slot(path) {
            edit_map(slot, change);
        }
    }

    /// Changes each map in the list or map at a nested field in place.
    pub fn edit_each(&mut self, path: &[&str], mut change: impl FnMut(&mut Self)) {
        match self.slot(path) {
            Some(Value::Array(list)) => list.iter_mut().for_each(|slot| edit_map(slot, &mut change)),
            Some(Value::Object(map)) => map.values_mut().for_each(|slot| edit_map(slot, &mut change)),
            _ => {}
        }
    }

    fn slot(&mut self, path: &[&str]) -> Option<&mut Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.0.get_mut(*first)?, |value, field| value.get_mut(*field))
    }

    /// Decodes a nested field as a Rust type.
    ///
    /// # Errors
    /// Serde's error if the JSON does not match the type; an absent field is decoded as JSON null.
    pub fn decode<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, serde_json::Error> {
        serde_json::from_value(self.get(path).unwrap_or_default().0)
    }

    /// Returns `kind`, or an empty string if it is absent.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.at(&["kind"]).str()
    }

    /// Returns `apiVersion`, or an empty string if it is absent.
    #[must_use]
    pub fn api_version(&self) -> &str {
        self.at(&["apiVersion"]).str()
    }

    /// Returns group, version and kind, or `None` if `apiVersion` is invalid.
    #[must_use]
    pub fn gvk(&self) -> Option<GroupVersionKind> {
        Some(self.api_version().parse::<GroupVersion>().ok()?.kind(self.kind()))
    }
}

fn edit_map(slot: &mut Value, change: impl FnOnce(&mut Object)) {
    if let Value::Object(map) = slot {
        let mut object = Object(std::mem::take(map));
        change(&mut object);
        *map = object.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_edited_in_place() {
        let mut object =
            Object::from_json(br#"{"a":{"list":[{"n":1},"x",{"n":2}],"map":{"k":{"n":3}}}}"#).unwrap();
        object.edit_each(&["a", "list"], |item| item.set(&["seen"], true));
        object.edit_each(&["a", "map"], |item| item.set(&["seen"], true));
        object.edit(&["a"], |a| a.set(&["b"], 1));
        object.edit(&["none"], |none| none.set(&["b"], 1));
        let want = r#"{"a":{"list":[{"n":1,"seen":true},"x",{"n":2,"seen":true}],"map":{"k":{"n":3,"seen":true}},"b":1}}"#;
        assert_eq!(object.to_json(), want.as_bytes());
    }

    #[test]
    fn nested_fields_are_set_read_copied_and_removed() {
        let mut object =
            Object::from_json(br#"{"kind":"A","apiVersion":"g/v1","spec":{"a":1,"b":[{"c":"x"}]}}"#).unwrap();
        assert_eq!(object.gvk().unwrap().group, "g");
        object.set(&["spec", "d", "e"], 5);
        assert_eq!(object.at(&["spec", "d", "e"]).i64(), Some(5));
        assert_eq!(object.remove(&["spec", "a"]), Some(Node(Value::from(1))));
        assert_eq!(
            object.to_json(),
            br#"{"kind":"A","apiVersion":"g/v1","spec":{"b":[{"c":"x"}],"d":{"e":5}}}"#
        );
        let other = Object::default();
        object.copy_from(&other, &["spec"]);
        assert!(!object.at(&["spec"]).is_present());
    }

    #[test]
    fn html_is_not_escaped_in_objects() {
        let json = "{\"a\":\"<b>&</b>\u{2028}\",\"n\":1e-7}";
        assert_eq!(Object::from_json(json.as_bytes()).unwrap().to_json(), json.as_bytes());
    }

    #[test]
    fn a_list_is_not_an_object() {
        assert!(matches!(Object::from_json(b"[]"), Err(NotAnObject::Type("array"))));
        assert!(matches!(Object::from_json(b"{"), Err(NotAnObject::Json(_))));
    }
}
