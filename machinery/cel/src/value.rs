//! Values: computed ones, and lazy views over JSON that somebody else owns.
//!
//! `'v` is the life of the JSON and of its [`DeclType`](crate::DeclType): `self` is looked at, never copied. Everything computed is
//! shared (`Arc`), so a clone costs little.

mod data;
mod double;
mod duration;
mod equal;
#[cfg(feature = "json")]
mod json;
mod key;
mod list;
mod map;
mod opaque;
mod steps;
mod text;
mod timestamp;
#[cfg(feature = "json")]
mod to_json;

use std::sync::Arc;

pub use data::{Key, List, Map, MapBuilder, Value};
pub use double::print_double;
pub use duration::Duration;
pub use equal::{compare, equal};
pub(crate) use equal::{equal_within, same_key};
#[cfg(feature = "json")]
pub use json::from_json;
pub use key::print_key;
pub use opaque::Opaque;
pub(crate) use steps::Steps;
pub use text::Text;
pub use timestamp::Timestamp;
#[cfg(feature = "json")]
pub use to_json::{JsonWriter, to_json};

use crate::error::EvalError;
use crate::types::Type;

impl<'v> Value<'v> {
    /// Text that is made anew.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Shared(text.into()))
    }

    /// A list of these.
    #[must_use]
    pub fn list(items: Vec<Value<'v>>) -> Self {
        Self::List(List::from(items))
    }

    /// An optional that holds this.
    #[must_use]
    pub fn some(value: Value<'v>) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// An optional that holds nothing.
    pub const NONE: Self = Self::Optional(None);

    /// A library's value.
    pub fn opaque(value: impl Opaque) -> Self {
        Self::Opaque(Arc::new(value))
    }

    /// Its type at run time; of lists and maps without saying of what.
    #[must_use]
    pub fn type_of(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
            Self::List(_) => Type::list(Type::Dyn),
            Self::Map(Map::Object { name, .. }) => Type::object(name),
            Self::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Self::Timestamp(_) => Type::Timestamp,
            Self::Duration(_) => Type::Duration,
            Self::Type(_) => Type::Type(None),
            Self::Optional(_) => Type::optional(Type::Dyn),
            Self::Opaque(value) => value.type_of(),
        }
    }

    /// `size()` as costs count it: characters, bytes, items, entries; of an optional what it holds; else 1.
    #[must_use]
    pub fn cost_size(&self) -> u64 {
        match self {
            Self::String(text) => text.characters(),
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => list.len() as u64,
            Self::Map(map) => map.len() as u64,
            Self::Optional(Some(value)) => value.cost_size(),
            Self::Opaque(value) => value.size().unwrap_or(1),
            _ => 1,
        }
    }

    /// Bytes that reading it takes: of text, of bytes and of what a library's value keeps.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::String(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Optional(Some(value)) => value.bytes(),
            Self::Opaque(value) => value.bytes(),
            _ => 0,
        }
    }

    /// The same without what a schema says of it: plain JSON, and of a type its name.
    ///
    /// # Errors
    /// A library's value, of which nothing plain is known.
    pub(crate) fn erased(&self) -> Result<Self, EvalError> {
        Ok(match self {
            Self::List(list) => Self::List(list.erased()),
            Self::Map(map) => Self::Map(map.erased()),
            Self::Type(ty) => Self::text(ty.name()),
            Self::Optional(None) => Self::Null,
            Self::Optional(Some(held)) => return held.erased(),
            Self::Opaque(value) => {
                return Err(EvalError::new(format!("unsupported conversion to ref.Val: {}", value.native())));
            }
            other => other.clone(),
        })
    }

    /// Whether it may be an index or a key to look up.
    pub(crate) fn is_index(&self) -> bool {
        matches!(self, Self::Bool(_) | Self::Int(_) | Self::Uint(_) | Self::Double(_) | Self::String(_))
    }

    /// What upstream's values are called in Go.
    pub(crate) fn go_type(&self) -> &'static str {
        match self {
            Self::Null => "types.Null",
            Self::Bool(_) => "types.Bool",
            Self::Int(_) => "types.Int",
            Self::Uint(_) => "types.Uint",
            Self::Double(_) => "types.Double",
            Self::String(_) => "types.String",
            Self::Bytes(_) => "types.Bytes",
            Self::Timestamp(_) => "types.Timestamp",
            Self::Duration(_) => "types.Duration",
            Self::Type(_) => "*types.Type",
            Self::Optional(_) => "*types.Optional",
            Self::List(list) => list.go_type(),
            Self::Map(map) => map.go_type(),
            Self::Opaque(_) => "ref.Val",
        }
    }

    /// The boolean that it is.
    ///
    /// # Errors
    /// `no such overload` for everything else; so do the other readers.
    pub fn as_bool(&self) -> Result<bool, EvalError> {
        if let Self::Bool(value) = self { Ok(*value) } else { Err(EvalError::no_such_overload()) }
    }

    /// The signed integer that it is.
    ///
    /// # Errors
    /// `no such overload`.
    pub fn as_int(&self) -> Result<i64, EvalError> {
        if let Self::Int(value) = self { Ok(*value) } else { Err(EvalError::no_such_overload()) }
    }

    /// The text that it is.
    ///
    /// # Errors
    /// `no such overload`.
    pub fn as_str(&self) -> Result<&str, EvalError> {
        if let Self::String(value) = self { Ok(value) } else { Err(EvalError::no_such_overload()) }
    }

    /// The list that it is.
    ///
    /// # Errors
    /// `no such overload`.
    pub fn as_list(&self) -> Result<&List<'v>, EvalError> {
        if let Self::List(value) = self { Ok(value) } else { Err(EvalError::no_such_overload()) }
    }

    /// The map that it is.
    ///
    /// # Errors
    /// `no such overload`.
    pub fn as_map(&self) -> Result<&Map<'v>, EvalError> {
        if let Self::Map(value) = self { Ok(value) } else { Err(EvalError::no_such_overload()) }
    }

    /// The library's value of this Rust type that it is.
    ///
    /// # Errors
    /// `no such overload`.
    pub fn as_opaque<T: Opaque>(&self) -> Result<&T, EvalError> {
        match self {
            Self::Opaque(value) => value.as_any().downcast_ref().ok_or_else(EvalError::no_such_overload),
            _ => Err(EvalError::no_such_overload()),
        }
    }

    /// Whether this value may stand where a declaration says this type, as far as run-time types show.
    #[must_use]
    pub fn is_of(&self, ty: &Type) -> bool {
        match (ty, self) {
            (Type::Dyn | Type::Any | Type::Param(_) | Type::Error, _)
            | (Type::Null, Self::Null)
            | (Type::Bool, Self::Bool(_))
            | (Type::Int, Self::Int(_))
            | (Type::Uint, Self::Uint(_))
            | (Type::Double, Self::Double(_))
            | (Type::String, Self::String(_))
            | (Type::Bytes, Self::Bytes(_))
            | (Type::Timestamp, Self::Timestamp(_))
            | (Type::Duration, Self::Duration(_))
            | (Type::Type(_), Self::Type(_))
            | (Type::Map(_), Self::Map(_)) => true,
            (Type::List(of), Self::List(list)) => {
                list.get(0).is_none_or(|first| first.is_ok_and(|v| v.is_of(of)))
            }
            (Type::Object(object), Self::Opaque(value)) => value.type_of().name() == &*object.name,
            (Type::Object(_), Self::Map(_)) => true,
            (Type::Opaque(..), Self::Optional(_)) => ty.optional_of().is_some(),
            (Type::Opaque(name, _), Self::Opaque(value)) => value.type_of().name() == &**name,
            _ => false,
        }
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u64> for Value<'_> {
    fn from(value: u64) -> Self {
        Self::Uint(value)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Self::Double(value)
    }
}

impl From<String> for Value<'_> {
    fn from(value: String) -> Self {
        Self::text(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl<'v> From<&'v str> for Value<'v> {
    fn from(value: &'v str) -> Self {
        Self::String(Text::Borrowed(value))
    }
}
