//! Deserialization like `encoding/json`.
//!
//! `null` is an empty value, and is skipped as an element of an array; unknown fields are ignored. Types should have
//! `#[serde(default)]`, so that absent fields are empty. [`Readable`] collects the valid elements of an array and reports
//! the invalid ones.
//!
//! ```
//! #[derive(Default, serde::Deserialize)]
//! #[serde(default)]
//! struct Metadata {
//!     name: String,
//!     finalizers: Vec<String>,
//! }
//!
//! let metadata: Metadata = portico_gostd::json::from_slice(br#"{"name": "a", "finalizers": null}"#)?;
//! assert!(metadata.name == "a" && metadata.finalizers.is_empty());
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{Deserializer, Error as _, IntoDeserializer, MapAccess, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Error, Number};

/// Maximum number of invalid elements of an array that are reported.
const MAX_REPORTED: usize = 8;

/// Returns the Go type that a JSON value is decoded into, for messages.
#[must_use]
pub fn go_type(value: &serde_json::Value) -> &'static str {
    use serde_json::Value;

    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Kind of a JSON value that Go decodes into a slice or a struct.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// Decoded into a slice.
    Array,
    /// Decoded into a struct or a map.
    Object,
}

/// Parses a JSON value that Go decodes into `go_type`; `null` is accepted.
///
/// # Errors
/// The text is not JSON, or is a value of another type: the message is that of `encoding/json`.
pub fn container(text: &str, expected: Container, go_type: &str) -> Result<serde_json::Value, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let fits = match expected {
        Container::Array => value.is_array(),
        Container::Object => value.is_object(),
    };
    if fits || value.is_null() {
        return Ok(value);
    }
    Err(format!("json: cannot unmarshal {} into Go value of type {go_type}", self::go_type(&value)))
}

/// Deserializes a document. `null` is an empty document.
///
/// # Errors
/// The text is not JSON, or a value has another type.
pub fn from_slice<'de, T: Default + Deserialize<'de>>(json: &'de [u8]) -> Result<T, Error> {
    let raw: &'de RawValue = serde_json::from_slice(json)?;
    Value { raw }.or_default()
}

/// Formats an error with its position, without the terms of serde.
#[must_use]
pub fn error_text(error: &Error) -> String {
    let problem = match error.classify() {
        Category::Eof => return "unexpected end of JSON input".to_owned(),
        Category::Data => "unexpected JSON type",
        Category::Syntax | Category::Io => "invalid JSON",
    };
    // Some errors have no position.
    match (error.line(), error.column()) {
        (0, _) => problem.to_owned(),
        (line, column) => format!("{problem} at line {line}, column {column}"),
    }
}

/// Valid elements of an array, and errors of the invalid ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readable<T> {
    /// Valid elements, in order.
    pub items: Vec<T>,
    /// Errors of the first invalid elements, with their indices.
    pub unreadable: Vec<String>,
}

impl<T> Default for Readable<T> {
    fn default() -> Self {
        Self { items: Vec::new(), unreadable: Vec::new() }
    }
}

impl<'de, T: Default + for<'a> Deserialize<'a>> Deserialize<'de> for Readable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let elements: Vec<Box<RawValue>> = Vec::deserialize(deserializer)?;
        let mut read = Self::default();
        for (index, raw) in elements.iter().enumerate() {
            match (Value { raw }).or_default() {
                Ok(item) => read.items.push(item),
                Err(error) if read.unreadable.len() < MAX_REPORTED => {
                    read.unreadable.push(format!("[{index}]: {error}"));
                }
                Err(_) => {}
            }
        }
        Ok(read)
    }
}

/// JSON value, deserialized like in Go.
#[derive(Clone, Copy)]
struct Value<'de> {
    raw: &'de RawValue,
}

impl<'de> Value<'de> {
    fn is_null(self) -> bool {
        self.raw.get() == "null"
    }

    fn or_default<T: Default + Deserialize<'de>>(self) -> Result<T, Error> {
        if self.is_null() { Ok(T::default()) } else { T::deserialize(self) }
    }

    /// Returns the members of an object that are not null.
    fn members(self) -> Result<Vec<(String, Self)>, Error> {
        let members: Members<'de> = serde_json::from_str(self.raw.get())?;
        let present = members.0.into_iter().filter(|(_, value)| !value.is_null());
        Ok(present.collect())
    }

    fn scalar(self) -> Result<Scalar<'de>, Error> {
        let text = self.raw.get();
        Ok(match text.as_bytes().first() {
            Some(b'{') => return Err(Error::custom("an object where a scalar is expected")),
            Some(b'[') => return Err(Error::custom("an array where a scalar is expected")),
            Some(b'"') => match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
                Some(text) if !text.contains('\\') => Scalar::Borrowed(text),
                _ => Scalar::Owned(serde_json::from_str(text)?),
            },
            Some(b'n') => Scalar::Null,
            Some(b't' | b'f') => Scalar::Bool(text == "true"),
            _ => {
                let number: Number = serde_json::from_str(text)?;
                match (number.as_u64(), number.as_i64()) {
                    (Some(number), _) => Scalar::Unsigned(number),
                    (_, Some(number)) => Scalar::Signed(number),
                    _ => Scalar::Float(number.as_f64().unwrap_or_default()),
                }
            }
        })
    }

    fn elements(self) -> Result<Vec<Self>, Error> {
        let elements: Vec<&'de RawValue> = serde_json::from_str(self.raw.get())?;
        Ok(elements.into_iter().map(|raw| Self { raw }).filter(|value| !value.is_null()).collect())
    }
}

impl<'de> IntoDeserializer<'de, Error> for Value<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.raw.get().as_bytes().first() {
            Some(b'{') => self.deserialize_map(visitor),
            Some(b'[') => self.deserialize_seq(visitor),
            _ => self.deserialize_str(visitor),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.raw.get().as_bytes().first() {
            Some(b'{') => visitor.visit_map(MapDeserializer::new(self.members()?.into_iter())),
            _ => Err(Error::invalid_type(Unexpected::Other("a value other than an object"), &visitor)),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.raw.get().as_bytes().first() {
            Some(b'[') => visitor.visit_seq(SeqDeserializer::new(self.elements()?.into_iter())),
            _ => Err(Error::invalid_type(Unexpected::Other("a value other than an array"), &visitor)),
        }
    }

    /// Deserializes any scalar. A common function avoids instantiating code of `serde_json` for each visitor.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.scalar()? {
            Scalar::Null => visitor.visit_unit(),
            Scalar::Bool(bool) => visitor.visit_bool(bool),
            Scalar::Unsigned(number) => visitor.visit_u64(number),
            Scalar::Signed(number) => visitor.visit_i64(number),
            Scalar::Float(number) => visitor.visit_f64(number),
            Scalar::Borrowed(text) => visitor.visit_borrowed_str(text),
            Scalar::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    /// Newtypes, such as raw values, deserialize from the value itself.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        serde_json::Deserializer::from_str(self.raw.get()).deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        serde_json::Deserializer::from_str(self.raw.get()).deserialize_enum(name, variants, visitor)
    }

    /// Accepts only objects; derived code would also accept arrays.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i128 u8 u16 u32 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct
    }
}

/// JSON value without nested values.
enum Scalar<'de> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Borrowed(&'de str),
    Owned(String),
}

/// Members of an object, in order.
struct Members<'de>(Vec<(String, Value<'de>)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor(PhantomData))
    }
}

struct MembersVisitor<'de>(PhantomData<&'de ()>);

impl<'de> Visitor<'de> for MembersVisitor<'de> {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members: Vec<(String, Value<'de>)> = Vec::new();
        let mut indices: HashMap<String, usize> = HashMap::new();
        while let Some((name, raw)) = map.next_entry::<String, &'de RawValue>()? {
            // The last of several members with the same name wins.
            match indices.entry(name) {
                Entry::Occupied(entry) => members[*entry.get()].1 = Value { raw },
                Entry::Vacant(entry) => {
                    members.push((entry.key().clone(), Value { raw }));
                    entry.insert(members.len() - 1);
                }
            }
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Document {
        name: String,
        count: i64,
        is: bool,
        list: Vec<String>,
        inner: Inner,
        map: BTreeMap<String, Vec<String>>,
        option: Option<Inner>,
        raw: Option<Box<RawValueEq>>,
    }

    /// Raw value with equality.
    #[derive(Debug, Deserialize)]
    struct RawValueEq(Box<RawValue>);

    impl PartialEq for RawValueEq {
        fn eq(&self, other: &Self) -> bool {
            self.0.get() == other.0.get()
        }
    }

    #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Inner {
        name: String,
        list: Vec<i64>,
    }

    #[test]
    fn null_is_an_empty_value_at_any_position() {
        let nulls = br#"{"name":null,"count":null,"is":null,"list":null,"inner":null,"map":null,"option":null,"raw":null,"more":null}"#;
        for json in [&nulls[..], b"null", b"{}", br#" {"inner":{"name":null,"list":null}, "list":[null]} "#] {
            assert_eq!(from_slice::<Document>(json).unwrap(), Document::default());
        }
        assert_eq!(
            from_slice::<Document>(br#"{"option":{"name":null,"list":[1,null]}}"#).unwrap().option,
            Some(Inner { list: vec![1], ..Inner::default() })
        );
    }

    #[test]
    fn known_fields_are_read_and_unknown_fields_are_ignored() {
        let json = br#"{"odd":{"deep":[1,{"a":null}]},"name":"a\u0062","count":-3,"is":true,"list":["x"],
            "inner":{"name":"i"},"map":{"k":["v"],"n":null},"name":"last"}"#;
        let read: Document = from_slice(json).unwrap();
        assert_eq!((read.name.as_str(), read.count, read.is), ("last", -3, true));
        assert_eq!((read.list, read.inner.name.as_str()), (vec!["x".to_owned()], "i"));
        assert_eq!(read.map, [("k".to_owned(), vec!["v".to_owned()])].into());
        for wrong in [&br#"{"name":5}"#[..], br#"{"inner":[]}"#, b"[]", b"", b"{", br#"{"count":1.5}"#] {
            assert!(from_slice::<Document>(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
    }

    #[test]
    fn invalid_elements_are_skipped_and_reported() {
        #[derive(Debug, Default, Deserialize)]
        #[serde(default)]
        struct List {
            items: Readable<Inner>,
        }
        let read: List =
            from_slice(br#"{"items":[{"name":"a"},{"name":1},null,7,{"name":"b","list":null}]}"#).unwrap();
        let names: Vec<&str> = read.items.items.iter().map(|item| item.name.as_str()).collect();
        assert_eq!((names, read.items.unreadable.len()), (vec!["a", "b"], 2));
        assert!(read.items.unreadable[0].starts_with("[1]: "), "{:?}", read.items.unreadable);
        assert!(from_slice::<List>(br#"{"items":null}"#).unwrap().items.items.is_empty());
        assert!(from_slice::<List>(br#"{"items":{}}"#).is_err());
    }
}
