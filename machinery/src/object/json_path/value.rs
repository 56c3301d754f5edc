//! Value that a path finds, and its printed form.

use serde::Serialize;
use serde_json::{Map, Value};

use super::parse::Literal;
use crate::object::{Float, escape_html};

/// Smallest float that is out of the range of 64-bit integers.
const MIN_OUT_OF_RANGE: f64 = 9_223_372_036_854_775_808.0;

/// Value in an object, or a literal of the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JsonPathValue<'a>(pub(super) ValueKind<'a>);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ValueKind<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a str),
    List(&'a [Value]),
    Map(&'a Map<String, Value>),
    /// Byte of a string, or an integer of the path, which has another type than the numbers of objects.
    Other(i64),
}

impl<'a> From<&'a Value> for JsonPathValue<'a> {
    fn from(value: &'a Value) -> Self {
        Self(match value {
            Value::Null => ValueKind::Null,
            Value::Bool(truth) => ValueKind::Bool(*truth),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(int), _) => ValueKind::Int(int),
                (None, float) => ValueKind::Float(float.unwrap_or_default()),
            },
            Value::String(text) => ValueKind::Text(text),
            Value::Array(list) => ValueKind::List(list),
            Value::Object(map) => ValueKind::Map(map),
        })
    }
}

impl<'a> From<&'a Literal> for JsonPathValue<'a> {
    fn from(literal: &'a Literal) -> Self {
        Self(match literal {
            Literal::Text(text) => ValueKind::Text(text),
            Literal::Int(int) => ValueKind::Other(*int),
            Literal::Float(float) => ValueKind::Float(*float),
            Literal::Bool(truth) => ValueKind::Bool(*truth),
        })
    }
}

impl JsonPathValue<'_> {
    /// Formats the value: strings as they are, maps and lists as compact JSON, null as `<no value>`.
    #[must_use]
    pub fn printed(&self) -> String {
        match self.0 {
            ValueKind::Null => "<no value>".to_owned(),
            ValueKind::Bool(truth) => truth.to_string(),
            ValueKind::Int(int) | ValueKind::Other(int) => int.to_string(),
            ValueKind::Float(float) => Float(float).to_string(),
            ValueKind::Text(text) => text.to_owned(),
            ValueKind::List(list) => json(list),
            ValueKind::Map(map) => json(map),
        }
    }

    /// Returns the string, if it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self.0 {
            ValueKind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number without its fraction, if it is one.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "saturates")]
    pub fn integer(&self) -> Option<i64> {
        match self.0 {
            ValueKind::Int(int) => Some(int),
            // Values out of range become the minimum, like on the hardware of upstream's reference.
            ValueKind::Float(float) if float.abs() >= MIN_OUT_OF_RANGE => Some(i64::MIN),
            ValueKind::Float(float) => Some(float as i64),
            _ => None,
        }
    }

    /// Returns the number, if it is one.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "upstream also rounds large numbers")]
    pub fn number(&self) -> Option<f64> {
        match self.0 {
            ValueKind::Int(int) => Some(int as f64),
            ValueKind::Float(float) => Some(float),
            _ => None,
        }
    }

    /// Returns the Boolean, if it is one.
    #[must_use]
    pub fn truth(&self) -> Option<bool> {
        match self.0 {
            ValueKind::Bool(truth) => Some(truth),
            _ => None,
        }
    }
}

fn json(value: &(impl Serialize + ?Sized)) -> String {
    // Maps with string keys can always be encoded.
    escape_html(&serde_json::to_string(value).unwrap_or_default()).into_owned()
}
