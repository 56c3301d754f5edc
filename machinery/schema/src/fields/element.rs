//! One element of a path: a field, a list element by keys or by value, or an index.

use std::cmp::Ordering;
use std::fmt::{self, Write as _};

use portico_machinery::object::{escape_html, step_json, value_from_json};
use serde_json::{Number, Value};

use super::error::FieldsError;

/// One element of a path. Ordered as upstream: fields, keys, values, indices.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// Field of a struct, or key of a map.
    Field(Box<str>),
    /// List element whose fields have these values, sorted by name.
    Key(Box<[(Box<str>, Value)]>),
    /// Element of a set that is equal to this value.
    Value(Value),
    /// List element at this index.
    Index(i64),
}

impl PathElement {
    #[must_use]
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// Creates the element with these keys, given in any order.
    #[must_use]
    pub fn key(mut keys: Vec<(Box<str>, Value)>) -> Self {
        keys.sort_by(|a, b| a.0.cmp(&b.0));
        Self::Key(keys.into())
    }

    /// Parses an element of `fieldsV1`: `f:name`, `k:{"name":"x"}`, `v:"x"`, `i:3`. Returns `None` for elements of an
    /// unknown kind, which upstream skips.
    ///
    /// # Errors
    /// [`FieldsError`].
    pub fn parse(text: &str) -> Result<Option<Self>, FieldsError> {
        let refuse = |reason: &str| FieldsError::Element(format!("{reason}: {text}"));
        let json =
            |text: &str| value_from_json(text.as_bytes()).map_err(|e| FieldsError::Element(e.to_string()));
        let (kind, rest) = match text.split_at_checked(2) {
            Some((kind, rest)) if kind.ends_with(':') => (kind, rest),
            Some(_) => return Err(refuse("missing colon")),
            None => return Err(refuse("key must be 2 characters long")),
        };
        Ok(Some(match kind {
            "f:" => Self::field(rest),
            "v:" => Self::Value(json(rest)?),
            "k:" => match json(rest)? {
                Value::Object(keys) => Self::key(keys.into_iter().map(|(k, v)| (k.into(), v)).collect()),
                _ => return Err(refuse("keys must be an object")),
            },
            "i:" => Self::Index(rest.parse().map_err(|_| refuse("an index must be a number"))?),
            _ => return Ok(None),
        }))
    }

    /// Returns the element as a key of `fieldsV1`.
    pub(super) fn to_json_key(&self) -> String {
        let mut out = String::new();
        match self {
            Self::Field(name) => return ["f:", name].concat(),
            Self::Key(keys) => {
                out.push_str("k:{");
                for (i, (name, value)) in keys.iter().enumerate() {
                    out.push_str(if i > 0 { "," } else { "" });
                    write_value(&mut out, &Value::String(name.to_string()));
                    out.push(':');
                    write_value(&mut out, value);
                }
                out.push('}');
            }
            Self::Value(value) => {
                out.push_str("v:");
                write_value(&mut out, value);
            }
            Self::Index(index) => {
                // Writing to a string cannot fail.
                let _ = write!(out, "i:{index}");
            }
        }
        out
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => {
                let pairs = a.iter().zip(b.iter());
                pairs
                    .map(|(a, b)| a.0.cmp(&b.0).then_with(|| compare_values(&a.1, &b.1)))
                    .find(|order| order.is_ne())
                    .unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (Self::Value(a), Self::Value(b)) => compare_values(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                let keys: Vec<String> = keys.iter().map(|(k, v)| format!("{k}={}", print_value(v))).collect();
                write!(f, "[{}]", keys.join(","))
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// Formats a value as upstream prints it in a path: maps without delimiters.
fn print_value(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            map.iter().map(|(key, value)| format!("{key}={}", print_value(value))).collect()
        }
        Value::Array(items) => format!("[{}]", items.iter().map(print_value).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

/// Compares values in a total order: numbers, strings, Booleans, lists, maps, null. Numbers are compared by value.
pub(crate) fn compare_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let first = a.iter().zip(b).map(|(a, b)| compare_values(a, b)).find(|order| order.is_ne());
            first.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => compare_maps(a, b),
        _ => type_rank(a).cmp(&type_rank(b)),
    }
}

/// Compares numbers by value. An integer is never rounded to a float: near 2^63 several integers would be equal to one float
/// but not to each other, and the order would not be total.
fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (as_integer(a), as_integer(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => compare_integer_with_float(a, as_float(b)),
        (None, Some(b)) => compare_integer_with_float(b, as_float(a)).reverse(),
        // JSON has no NaN.
        (None, None) => as_float(a).partial_cmp(&as_float(b)).unwrap_or(Ordering::Equal),
    }
}

fn as_integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn as_float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

fn compare_integer_with_float(integer: i128, float: f64) -> Ordering {
    // Every float without its fraction fits: values outside the range of i128 saturate.
    #[expect(clippy::cast_possible_truncation, reason = "saturates")]
    let floor = float.floor() as i128;
    let has_fraction = float.fract() != 0.0;
    integer.cmp(&floor).then(if has_fraction { Ordering::Less } else { Ordering::Equal })
}

type Map = serde_json::Map<String, Value>;

fn compare_maps(a: &Map, b: &Map) -> Ordering {
    let sorted = |map: &Map| {
        let mut entries: Vec<(String, Value)> = map.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries
    };
    let (a, b) = (sorted(a), sorted(b));
    let pairs = a.iter().zip(&b).map(|(a, b)| a.0.cmp(&b.0).then_with(|| compare_values(&a.1, &b.1)));
    pairs.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn type_rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Writes a value as upstream writes it into an element: compact, with HTML characters escaped.
fn write_value(out: &mut String, value: &Value) {
    out.push_str(&escape_html(&step_json(value)));
}
