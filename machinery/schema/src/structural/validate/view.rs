//! View of a value for checks. A whole object need not be a JSON value.

use serde_json::{Map, Number, Value};

use super::float;
use crate::structural::printed;

#[derive(Clone, Copy, Debug)]
pub(super) enum View<'v> {
    Null,
    Bool(bool),
    Number(&'v Number),
    String(&'v str),
    Array(&'v [Value]),
    Object(&'v Map<String, Value>),
}

impl<'v> View<'v> {
    pub(super) fn of(value: &'v Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(truth) => Self::Bool(*truth),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::String(text),
            Value::Array(items) => Self::Array(items),
            Value::Object(fields) => Self::Object(fields),
        }
    }

    /// True if the value equals a value of an enumeration after Go's conversion to the type of that value: a float loses its
    /// fraction, an integer becomes a character. As upstream, null equals no value.
    pub(super) fn equals(self, other: &Value) -> bool {
        match (self, other) {
            (Self::Bool(a), Value::Bool(b)) => a == *b,
            (Self::Number(a), Value::Number(b)) => {
                if b.is_f64() {
                    a.as_f64() == b.as_f64()
                } else {
                    a.as_i64().or_else(|| a.as_f64().map(float::truncate_to_i64)) == b.as_i64()
                }
            }
            (Self::Number(a), Value::String(b)) => a.as_i64().is_some_and(|code| is_character(code, b)),
            (Self::String(a), Value::String(b)) => a == b,
            (Self::Array(a), Value::Array(b)) => a == b.as_slice(),
            (Self::Object(a), Value::Object(b)) => a == b,
            _ => false,
        }
    }

    /// Formats the value for an error.
    pub(super) fn printed(self) -> String {
        printed::print_value(&match self {
            Self::Null => Value::Null,
            Self::Bool(truth) => Value::Bool(truth),
            Self::Number(number) => Value::Number(number.clone()),
            Self::String(text) => text.into(),
            Self::Array(items) => items.into(),
            Self::Object(fields) => Value::Object(fields.clone()),
        })
    }
}

/// True if a text is the character with this code. Codes without a character become the replacement character.
fn is_character(code: i64, text: &str) -> bool {
    let mut chars = text.chars();
    let expected = u32::try_from(code).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
    chars.next() == Some(expected) && chars.next().is_none()
}
