//! Cursor: a position in an object, with the field path that errors print.

use std::hash::{Hash, Hasher};

use serde_json::{Map, Value};
use smallvec::SmallVec;

use super::{Node, Printed, go_json, go_type};
use crate::field::{Error, Path};
use crate::quantity::Quantity;

/// Position in an object, which may not exist. Absent values read as the zero value; errors contain the path.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    root: Option<&'a Map<String, Value>>,
    value: Option<&'a Value>,
    /// Steps from the root. A path is only formatted for an error.
    steps: SmallVec<[Step<'a>; 6]>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

/// Number of fields up to which comparing names is faster than hashing one.
const FEW_FIELDS: usize = 8;

/// Returns the value of a field. Faster than [`Map::get`] for small maps, like most maps of objects.
#[must_use]
pub fn find_field<'a>(map: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if map.len() > FEW_FIELDS {
        return map.get(name);
    }
    map.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

impl<'a> Cursor<'a> {
    pub(super) fn root(map: &'a Map<String, Value>) -> Self {
        Self { root: Some(map), value: None, steps: SmallVec::new() }
    }

    fn step<'b>(&self, value: Option<&'b Value>, step: Step<'b>) -> Cursor<'b>
    where
        'a: 'b,
    {
        let mut steps = SmallVec::from_slice(&self.steps);
        steps.push(step);
        Cursor { root: None, value, steps }
    }

    /// Returns the field path.
    #[must_use]
    pub fn path(&self) -> Path {
        self.steps.iter().fold(Path::root(), |path, step| match step {
            Step::Field(name) => path.child(name),
            Step::Key(key) => path.key(key),
            Step::Index(index) => path.index(*index),
        })
    }

    fn map(&self) -> Option<&'a Map<String, Value>> {
        self.root.or_else(|| self.value.and_then(Value::as_object))
    }

    /// Returns a cursor at the child field with this name.
    #[must_use]
    pub fn field<'b>(&self, name: &'b str) -> Cursor<'b>
    where
        'a: 'b,
    {
        self.step(self.map().and_then(|map| find_field(map, name)), Step::Field(name))
    }

    /// Returns a cursor at the map entry with this key, printed in brackets.
    #[must_use]
    pub fn key<'b>(&self, key: &'b str) -> Cursor<'b>
    where
        'a: 'b,
    {
        self.step(self.map().and_then(|m| m.get(key)), Step::Key(key))
    }

    /// Returns the string under this key of a map, if there is one.
    #[must_use]
    pub fn entry_str(&self, key: &str) -> Option<&'a str> {
        self.map().and_then(|m| m.get(key)).and_then(Value::as_str)
    }

    /// Returns the entries of a map that are strings.
    pub fn string_entries(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let entries = self.map().into_iter().flatten();
        entries.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    /// Returns a cursor with this path and the value of another one, for values that upstream stores under another path.
    #[must_use]
    pub fn with_value_of(&self, other: &Self) -> Self {
        Self { root: other.root, value: other.value, steps: self.steps.clone() }
    }

    /// Returns the JSON value, for the schema engine.
    #[must_use]
    pub fn value(&self) -> Option<&'a Value> {
        self.value
    }

    /// Returns the elements of a list; empty if the value is not a list.
    pub fn items(&self) -> impl Iterator<Item = Self> + use<'a> {
        let parent = self.clone();
        let list = self.value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        list.iter().enumerate().map(move |(i, v)| parent.step(Some(v), Step::Index(i)))
    }

    /// Returns the entries of a map as keys and cursors; empty if the value is not a map.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let parent = self.clone();
        self.map().into_iter().flatten().map(move |(k, v)| (k.as_str(), parent.step(Some(v), Step::Key(k))))
    }

    /// Returns the number of elements or entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map().map(Map::len).or_else(|| self.value.and_then(Value::as_array).map(Vec::len)).unwrap_or(0)
    }

    /// True if there are no elements or entries, or the value is absent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if the value is present and not null.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.root.is_some() || self.value.is_some_and(|v| !v.is_null())
    }

    /// Returns the string, or an empty string if it is absent.
    #[must_use]
    pub fn str(&self) -> &'a str {
        self.value.and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the string, if there is one.
    #[must_use]
    pub fn opt_str(&self) -> Option<&'a str> {
        self.value.and_then(Value::as_str)
    }

    /// Returns the integer, if there is one.
    #[must_use]
    pub fn i64(&self) -> Option<i64> {
        self.value.and_then(Value::as_i64)
    }

    /// Returns the Boolean, or false if it is absent.
    #[must_use]
    pub fn bool(&self) -> bool {
        self.opt_bool().unwrap_or_default()
    }

    /// Returns the Boolean, if there is one.
    #[must_use]
    pub fn opt_bool(&self) -> Option<bool> {
        self.value.and_then(Value::as_bool)
    }

    /// Returns the quantity, if there is one.
    #[must_use]
    pub fn quantity(&self) -> Option<Quantity> {
        self.opt_str()?.parse().ok()
    }

    /// True if the value is a number, for fields that contain a number or a name.
    #[must_use]
    pub fn is_number(&self) -> bool {
        self.value.is_some_and(Value::is_number)
    }

    /// True if the value is a string, number or Boolean.
    #[must_use]
    pub fn is_scalar(&self) -> bool {
        self.value.is_some_and(|v| v.is_string() || v.is_number() || v.is_boolean())
    }

    /// Returns a copy of the value.
    #[must_use]
    pub fn node(&self) -> Option<Node> {
        match self.root {
            Some(map) => Some(Node(Value::Object(map.clone()))),
            None => self.value.cloned().map(Node),
        }
    }

    /// True if the values of both cursors are equal.
    #[must_use]
    pub fn same_as(&self, other: &Cursor<'_>) -> bool {
        match (self.root, other.root) {
            (Some(a), Some(b)) => a == b,
            _ => self.value == other.value,
        }
    }

    /// Feeds the value to a hasher.
    pub fn hash_into(&self, hasher: &mut impl Hasher) {
        (self.root, self.value).hash(hasher);
    }

    /// Formats the value as upstream prints it in an error: strings quoted, the rest as compact JSON. Values longer than
    /// [`MAX_PRINTED_BYTES`](super::MAX_PRINTED_BYTES) are truncated and end in `...`.
    #[must_use]
    pub fn printed(&self) -> String {
        match (self.root, self.value) {
            (Some(map), _) => go_json(map),
            (None, Some(value)) => value.printed(),
            (None, None) => "\"\"".to_owned(),
        }
    }

    /// Returns the Go type of the value, such as `map[string]interface {}`, or `<nil>` if it is absent.
    #[must_use]
    pub fn go_type(&self) -> &'static str {
        match (self.root, self.value) {
            (Some(_), _) => go_type(&Value::Object(Map::new())),
            (None, value) => go_type(value.unwrap_or(&Value::Null)),
        }
    }

    /// Returns the value as compact JSON without truncation, or `null` if it is absent.
    #[must_use]
    pub fn json(&self) -> String {
        match (self.root, self.value) {
            (Some(map), _) => serde_json::to_string(map).unwrap_or_default(),
            (None, value) => value.map_or_else(|| "null".to_owned(), Value::to_string),
        }
    }

    /// True if the value is a map.
    #[must_use]
    pub fn is_map(&self) -> bool {
        self.map().is_some()
    }

    /// Returns the error `Required value` for this path.
    #[must_use]
    pub fn required(&self, detail: &str) -> Error {
        Error::required(&self.path(), detail)
    }

    /// Returns the error `Invalid value` with this path and value.
    #[must_use]
    pub fn invalid(&self, detail: &str) -> Error {
        Error::invalid_printed(&self.path(), &self.printed(), detail)
    }

    /// Returns the error `Duplicate value` with this path and value.
    #[must_use]
    pub fn duplicate(&self) -> Error {
        let mut error = Error::duplicate(&self.path(), "");
        error.body = format!("Duplicate value: {}", self.printed());
        error
    }

    /// Returns the error `Not found` with this path and value.
    #[must_use]
    pub fn not_found(&self) -> Error {
        Error::not_found(&self.path(), self.str())
    }

    /// Returns [`Cursor::invalid`], where an absent value is printed as an empty string.
    #[must_use]
    pub fn invalid_text(&self, detail: &str) -> Error {
        Error::invalid(&self.path(), self.str(), detail)
    }

    /// Returns the error `Invalid value` for a value that upstream prints in another form.
    #[must_use]
    pub fn invalid_as(&self, printed: &str, detail: &str) -> Error {
        Error::invalid_printed(&self.path(), printed, detail)
    }

    /// Returns the error `Forbidden` for this path.
    #[must_use]
    pub fn forbidden(&self, detail: &str) -> Error {
        Error::forbidden(&self.path(), detail)
    }

    /// Returns the error `Unsupported value` with this path and value.
    #[must_use]
    pub fn not_supported(&self, supported: &[&str]) -> Error {
        Error::not_supported(&self.path(), self.str(), supported)
    }

    /// Returns the error `Unsupported value` for a struct.
    #[must_use]
    pub fn struct_not_supported(&self, supported: &[&str]) -> Error {
        Error::not_supported_printed(&self.path(), &self.printed(), supported)
    }

    /// Returns the error `Invalid value` for this path, without the value.
    #[must_use]
    pub fn invalid_unprinted(&self, detail: &str) -> Error {
        Error::invalid_unprinted(&self.path(), detail)
    }
}
