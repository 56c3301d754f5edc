//! A cursor: a place in an object and the field path that errors print.

use std::hash::{Hash, Hasher};

use serde_json::{Map, Value};
use smallvec::SmallVec;

use super::{Node, Printed, go_json, go_type};
use crate::field::{Error, Path};
use crate::quantity::Quantity;

/// A place in an object, there or not. Reading what is absent gives the zero value; errors know where they are.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    root: Option<&'a Map<String, Value>>,
    value: Option<&'a Value>,
    /// The way here. A path is only printed when there is something to complain about.
    steps: SmallVec<[Step<'a>; 6]>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

/// Fields of a map up to which comparing names takes less time than hashing one.
const FEW_FIELDS: usize = 8;

/// The value of a field. Faster than [`Map::get`] for small maps, as most of the maps of objects are.
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

    /// The field path.
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

    /// The child field of this name.
    #[must_use]
    pub fn field<'b>(&self, name: &'b str) -> Cursor<'b>
    where
        'a: 'b,
    {
        self.step(self.map().and_then(|map| find_field(map, name)), Step::Field(name))
    }

    /// The map entry under this key, printed in brackets.
    #[must_use]
    pub fn key<'b>(&self, key: &'b str) -> Cursor<'b>
    where
        'a: 'b,
    {
        self.step(self.map().and_then(|m| m.get(key)), Step::Key(key))
    }

    /// The string in the map here under this key, if there is one.
    #[must_use]
    pub fn entry_str(&self, key: &str) -> Option<&'a str> {
        self.map().and_then(|m| m.get(key)).and_then(Value::as_str)
    }

    /// The entries that are strings.
    pub fn string_entries(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let entries = self.map().into_iter().flatten();
        entries.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    /// This place with what stands at another: for what upstream holds elsewhere than where it is written.
    #[must_use]
    pub fn holding(&self, other: &Self) -> Self {
        Self { root: other.root, value: other.value, steps: self.steps.clone() }
    }

    /// What stands here, for the schema engine.
    #[must_use]
    pub fn value(&self) -> Option<&'a Value> {
        self.value
    }

    /// The elements of a list, none when it is no list.
    pub fn items(&self) -> impl Iterator<Item = Self> + use<'a> {
        let here = self.clone();
        let list = self.value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        list.iter().enumerate().map(move |(i, v)| here.step(Some(v), Step::Index(i)))
    }

    /// The entries of a map as key and cursor, none when it is no map.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let here = self.clone();
        self.map().into_iter().flatten().map(move |(k, v)| (k.as_str(), here.step(Some(v), Step::Key(k))))
    }

    /// How many elements or entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map().map(Map::len).or_else(|| self.value.and_then(Value::as_array).map(Vec::len)).unwrap_or(0)
    }

    /// Whether there are no elements, no entries, or nothing at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether something other than null stands here.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.root.is_some() || self.value.is_some_and(|v| !v.is_null())
    }

    /// The string here, empty when absent.
    #[must_use]
    pub fn str(&self) -> &'a str {
        self.value.and_then(Value::as_str).unwrap_or_default()
    }

    /// The string here, if there is one.
    #[must_use]
    pub fn opt_str(&self) -> Option<&'a str> {
        self.value.and_then(Value::as_str)
    }

    /// The integer here, if there is one.
    #[must_use]
    pub fn i64(&self) -> Option<i64> {
        self.value.and_then(Value::as_i64)
    }

    /// The boolean here, false when absent.
    #[must_use]
    pub fn bool(&self) -> bool {
        self.opt_bool().unwrap_or_default()
    }

    /// The boolean here, if there is one.
    #[must_use]
    pub fn opt_bool(&self) -> Option<bool> {
        self.value.and_then(Value::as_bool)
    }

    /// The quantity here, if there is one.
    #[must_use]
    pub fn quantity(&self) -> Option<Quantity> {
        self.opt_str()?.parse().ok()
    }

    /// Whether a number stands here, where a name might.
    #[must_use]
    pub fn is_number(&self) -> bool {
        self.value.is_some_and(Value::is_number)
    }

    /// Whether a string, number or truth value stands here.
    #[must_use]
    pub fn is_scalar(&self) -> bool {
        self.value.is_some_and(|v| v.is_string() || v.is_number() || v.is_boolean())
    }

    /// A copy of what stands here.
    #[must_use]
    pub fn node(&self) -> Option<Node> {
        match self.root {
            Some(map) => Some(Node(Value::Object(map.clone()))),
            None => self.value.cloned().map(Node),
        }
    }

    /// Whether the same stands at both places.
    #[must_use]
    pub fn same_as(&self, other: &Cursor<'_>) -> bool {
        match (self.root, other.root) {
            (Some(a), Some(b)) => a == b,
            _ => self.value == other.value,
        }
    }

    /// Feeds what stands here to a hasher.
    pub fn hash_into(&self, hasher: &mut impl Hasher) {
        (self.root, self.value).hash(hasher);
    }

    /// The value as upstream prints it in an error: strings quoted, the rest as compact JSON. Of a long one the first
    /// [`MAX_PRINTED_BYTES`](super::MAX_PRINTED_BYTES) and `...`.
    #[must_use]
    pub fn printed(&self) -> String {
        match (self.root, self.value) {
            (Some(map), _) => go_json(map),
            (None, Some(value)) => value.printed(),
            (None, None) => "\"\"".to_owned(),
        }
    }

    /// What Go calls its type: `map[string]interface {}`; `<nil>` where there is none.
    #[must_use]
    pub fn go_type(&self) -> &'static str {
        match (self.root, self.value) {
            (Some(_), _) => go_type(&Value::Object(Map::new())),
            (None, value) => go_type(value.unwrap_or(&Value::Null)),
        }
    }

    /// The value as compact JSON, whole; `null` where there is none.
    #[must_use]
    pub fn json(&self) -> String {
        match (self.root, self.value) {
            (Some(map), _) => serde_json::to_string(map).unwrap_or_default(),
            (None, value) => value.map_or_else(|| "null".to_owned(), Value::to_string),
        }
    }

    /// Whether a map stands here.
    #[must_use]
    pub fn is_map(&self) -> bool {
        self.map().is_some()
    }

    /// `Required value` here.
    #[must_use]
    pub fn required(&self, detail: &str) -> Error {
        Error::required(&self.path(), detail)
    }

    /// `Invalid value` here, printing what stands here.
    #[must_use]
    pub fn invalid(&self, detail: &str) -> Error {
        Error::invalid_printed(&self.path(), &self.printed(), detail)
    }

    /// `Duplicate value` here, printing what stands here.
    #[must_use]
    pub fn duplicate(&self) -> Error {
        let mut error = Error::duplicate(&self.path(), "");
        error.body = format!("Duplicate value: {}", self.printed());
        error
    }

    /// `Not found` here.
    #[must_use]
    pub fn not_found(&self) -> Error {
        Error::not_found(&self.path(), self.str())
    }

    /// As [`Cursor::invalid`], where an absent value prints as empty text.
    #[must_use]
    pub fn invalid_text(&self, detail: &str) -> Error {
        Error::invalid(&self.path(), self.str(), detail)
    }

    /// `Invalid value` here, for a value that upstream prints otherwise than it is written.
    #[must_use]
    pub fn invalid_as(&self, printed: &str, detail: &str) -> Error {
        Error::invalid_printed(&self.path(), printed, detail)
    }

    /// `Forbidden` here.
    #[must_use]
    pub fn forbidden(&self, detail: &str) -> Error {
        Error::forbidden(&self.path(), detail)
    }

    /// `Unsupported value` here.
    #[must_use]
    pub fn not_supported(&self, supported: &[&str]) -> Error {
        Error::not_supported(&self.path(), self.str(), supported)
    }

    /// `Unsupported value` of a struct that stands here.
    #[must_use]
    pub fn struct_not_supported(&self, supported: &[&str]) -> Error {
        Error::not_supported_printed(&self.path(), &self.printed(), supported)
    }

    /// `Invalid value` here without the value.
    #[must_use]
    pub fn invalid_unprinted(&self, detail: &str) -> Error {
        Error::invalid_unprinted(&self.path(), detail)
    }
}
