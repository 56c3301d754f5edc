//! Keys of computed maps. Equal numbers of different types are the same key.

use std::hash::{Hash, Hasher};

use super::{Key, Value, equal, print_double};

impl<'v> Key<'v> {
    /// Converts a value to a key for lookups. Doubles with an integer value match integers. Returns `None` for types that
    /// cannot be keys.
    #[must_use]
    pub fn lookup(value: &Value<'v>) -> Option<Self> {
        match value {
            Value::Double(number) => Self::from_integral_double(*number).or_else(|| Self::from_value(value)),
            other => Self::from_value(other),
        }
    }

    /// Converts a value to a key of a map. Returns `None` for lists, maps, bytes and values of libraries.
    #[must_use]
    pub fn from_value(value: &Value<'v>) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(Self::Bool(*value)),
            Value::Int(value) => Some(Self::Int(*value)),
            Value::Uint(value) => Some(Self::Uint(*value)),
            Value::String(value) => Some(Self::String(value.clone())),
            other => is_plain(other).then(|| Self::Other(Box::new(other.clone()))),
        }
    }

    /// Returns the integer value of a double, if it has one.
    pub(crate) fn from_integral_double(number: f64) -> Option<Self> {
        integral_key(number)
    }

    /// Converts the key to a value.
    #[must_use]
    pub fn to_value(&self) -> Value<'v> {
        match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Uint(value) => Value::Uint(*value),
            Self::String(value) => Value::String(value.clone()),
            Self::Other(value) => (**value).clone(),
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
fn integral_key<'v>(value: f64) -> Option<Key<'v>> {
    let int = value as i64;
    if (int as f64).total_cmp(&value).is_eq() || value == 0.0 {
        return Some(Key::Int(int));
    }
    let wide = value as i128;
    u64::try_from(wide).ok().filter(|_| (wide as f64).total_cmp(&value).is_eq()).map(Key::Uint)
}

/// True for keys other than numbers, booleans and strings.
fn is_plain(value: &Value<'_>) -> bool {
    match value {
        Value::Null | Value::Double(_) | Value::Timestamp(_) | Value::Duration(_) | Value::Type(_) => true,
        Value::Optional(inner) => inner.as_ref().is_none_or(|inner| Key::from_value(inner).is_some()),
        _ => false,
    }
}

fn hash<H: Hasher>(value: &Value<'_>, state: &mut H) {
    match value {
        // Both zeros are equal.
        Value::Double(value) => (value + 0.0).to_bits().hash(state),
        Value::Timestamp(at) => (at.seconds, at.nanos).hash(state),
        Value::Duration(span) => span.nanos.hash(state),
        Value::Type(ty) => ty.name().hash(state),
        Value::Optional(Some(inner)) => {
            if let Some(key) = Key::from_value(inner) {
                key.hash(state);
            }
        }
        _ => {}
    }
}

/// Formats a key or an index for messages.
#[must_use]
pub fn print_key(value: &Value<'_>) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => print_double(*value),
        Value::String(value) => value.to_string(),
        // Go prints null as 0.
        Value::Null => "0".to_owned(),
        other => other.type_of().name().to_owned(),
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(one), Self::Bool(two)) => one == two,
            (Self::String(one), Self::String(two)) => one == two,
            (Self::Other(one), Self::Other(two)) => equal(one, two).unwrap_or(false),
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
            Self::Other(value) => hash(value, state),
        }
    }
}
