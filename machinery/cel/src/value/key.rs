//! Keys of computed maps. Numbers of different types are one key when they are equal.

use std::hash::{Hash, Hasher};

use super::{Text, Value};

/// A key of a computed map.
#[derive(Clone, Debug)]
pub enum Key<'v> {
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// Text.
    String(Text<'v>),
}

impl<'v> Key<'v> {
    /// A value as a key to look up; doubles that are whole numbers count as these. None for what is no key.
    #[must_use]
    pub fn lookup(value: &Value<'v>) -> Option<Self> {
        match value {
            Value::Double(value) => whole(*value),
            other => Self::from_value(other),
        }
    }

    /// A value as a key of a literal: booleans, integers, text.
    #[must_use]
    pub fn from_value(value: &Value<'v>) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(Self::Bool(*value)),
            Value::Int(value) => Some(Self::Int(*value)),
            Value::Uint(value) => Some(Self::Uint(*value)),
            Value::String(value) => Some(Self::String(value.clone())),
            _ => None,
        }
    }

    /// The key as a value.
    #[must_use]
    pub fn to_value(&self) -> Value<'v> {
        match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Uint(value) => Value::Uint(*value),
            Self::String(value) => Value::String(value.clone()),
        }
    }

    fn number(&self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(i128::from(*value)),
            Self::Uint(value) => Some(i128::from(*value)),
            _ => None,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "compared after the conversion"
)]
fn whole<'v>(value: f64) -> Option<Key<'v>> {
    let int = value as i64;
    if (int as f64).total_cmp(&value).is_eq() || value == 0.0 {
        return Some(Key::Int(int));
    }
    let wide = value as i128;
    u64::try_from(wide).ok().filter(|_| (wide as f64).total_cmp(&value).is_eq()).map(Key::Uint)
}

/// A key or an index as messages show it.
#[must_use]
pub fn print_key(value: &Value<'_>) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => crate::library::print_double(*value),
        Value::String(value) => value.to_string(),
        Value::Null => "null".to_owned(),
        other => other.type_of().name().to_owned(),
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(one), Self::Bool(two)) => one == two,
            (Self::String(one), Self::String(two)) => one == two,
            _ => self.number().is_some() && self.number() == other.number(),
        }
    }
}

impl Eq for Key<'_> {}

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Bool(value) => value.hash(state),
            Self::String(value) => (**value).hash(state),
            Self::Int(_) | Self::Uint(_) => self.number().hash(state),
        }
    }
}
