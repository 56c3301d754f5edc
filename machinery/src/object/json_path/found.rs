//! Value that a path finds, and its printed form.

use serde::Serialize;
use serde_json::{Map, Value};

use super::parse::Literal;
use crate::object::{Float, escape_html};

/// Smallest float that is out of the range of 64-bit integers.
const BEYOND_INTEGERS: f64 = 9_223_372_036_854_775_808.0;

/// Value in an object, or a literal of the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found<'a>(pub(super) Kind<'a>);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind<'a> {
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

impl<'a> From<&'a Value> for Found<'a> {
    fn from(value: &'a Value) -> Self {
        Self(match value {
            Value::Null => Kind::Null,
            Value::Bool(truth) => Kind::Bool(*truth),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(int), _) => Kind::Int(int),
                (None, float) => Kind::Float(float.unwrap_or_default()),
            },
            Value::String(text) => Kind::Text(text),
            Value::Array(list) => Kind::List(list),
            Value::Object(map) => Kind::Map(map),
        })
    }
}

impl<'a> From<&'a Literal> for Found<'a> {
    fn from(literal: &'a Literal) -> Self {
        Self(match literal {
            Literal::Text(text) => Kind::Text(text),
            Literal::Int(int) => Kind::Other(*int),
            Literal::Float(float) => Kind::Float(*float),
            Literal::Bool(truth) => Kind::Bool(*truth),
        })
    }
}

impl Found<'_> {
    /// Formats the value: strings as they are, maps and lists as compact JSON, null as `<no value>`.
    #[must_use]
    pub fn printed(&self) -> String {
        match self.0 {
            Kind::Null => "<no value>".to_owned(),
            Kind::Bool(truth) => truth.to_string(),
            Kind::Int(int) | Kind::Other(int) => int.to_string(),
            Kind::Float(float) => Float(float).to_string(),
            Kind::Text(text) => text.to_owned(),
            Kind::List(list) => json(list),
            Kind::Map(map) => json(map),
        }
    }

    /// Returns the string, if it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self.0 {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number without its fraction, if it is one.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "what is too large becomes the largest")]
    pub fn integer(&self) -> Option<i64> {
        match self.0 {
            Kind::Int(int) => Some(int),
            // Values out of range become the minimum, like on the hardware of upstream's reference.
            Kind::Float(float) if float.abs() >= BEYOND_INTEGERS => Some(i64::MIN),
            Kind::Float(float) => Some(float as i64),
            _ => None,
        }
    }

    /// Returns the number, if it is one.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "as upstream shows large numbers")]
    pub fn number(&self) -> Option<f64> {
        match self.0 {
            Kind::Int(int) => Some(int as f64),
            Kind::Float(float) => Some(float),
            _ => None,
        }
    }

    /// Returns the Boolean, if it is one.
    #[must_use]
    pub fn truth(&self) -> Option<bool> {
        match self.0 {
            Kind::Bool(truth) => Some(truth),
            _ => None,
        }
    }
}

fn json(value: &(impl Serialize + ?Sized)) -> String {
    // Maps with string keys can always be encoded.
    escape_html(&serde_json::to_string(value).unwrap_or_default()).into_owned()
}
