//! Values: computed, or borrowed from JSON.
//!
//! `'v` is the lifetime of the JSON and of its [`DeclType`](crate::DeclType), which are read in place. Computed values are
//! reference-counted, so that clones are cheap.

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
#[doc(hidden)]
pub use double::print_double;
pub use duration::Duration;
pub use equal::{compare, equal};
pub(crate) use equal::{equal_within, same_key};
#[cfg(feature = "json")]
pub use json::from_json;
#[doc(hidden)]
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
    /// Returns a string value that owns its text.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Shared(text.into()))
    }

    /// Returns a list value.
    #[must_use]
    pub fn list(items: Vec<Value<'v>>) -> Self {
        Self::List(List::from(items))
    }

    /// Returns an optional with a value.
    #[must_use]
    pub fn some(value: Value<'v>) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// An optional without a value.
    pub const NONE: Self = Self::Optional(None);

    /// Returns a value of a library.
    pub fn opaque(value: impl Opaque) -> Self {
        Self::Opaque(Arc::new(value))
    }

    /// Returns the type at run time. Lists and maps have dynamic items.
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

    /// Returns the size for costs: characters, bytes, items or entries; for an optional, of its value; 1 for other types.
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

    /// Returns the bytes of a string, of bytes or of a library's value.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::String(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Optional(Some(value)) => value.bytes(),
            Self::Opaque(value) => value.bytes(),
            _ => 0,
        }
    }

    /// Returns the value as plain JSON, without its declaration. A type becomes its name.
    ///
    /// # Errors
    /// The value contains a value of a library.
    pub(crate) fn without_declaration(&self) -> Result<Self, EvalError> {
        Ok(match self {
            Self::List(list) => Self::List(list.without_declaration()),
            Self::Map(map) => Self::Map(map.without_declaration()),
            Self::Type(ty) => Self::text(ty.name()),
            Self::Optional(None) => Self::Null,
            Self::Optional(Some(inner)) => return inner.without_declaration(),
            Self::Opaque(value) => {
                return Err(EvalError::new(format!("unsupported conversion to ref.Val: {}", value.native())));
            }
            other => other.clone(),
        })
    }

    /// True if the value may be an index or key.
    pub(crate) fn is_index(&self) -> bool {
        matches!(self, Self::Bool(_) | Self::Int(_) | Self::Uint(_) | Self::Double(_) | Self::String(_))
    }

    /// Returns the name of the Go type, for messages.
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

    /// Returns the boolean, or `None` if the value has another type.
    ///
    /// The `as_` functions do not convert between types. To get an error instead of `None`, use `bool::try_from(&value)`;
    /// likewise for the other types.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// Returns the signed integer, or `None` if the value has another type.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        if let Self::Int(value) = self { Some(*value) } else { None }
    }

    /// Returns the unsigned integer, or `None` if the value has another type.
    #[must_use]
    pub fn as_uint(&self) -> Option<u64> {
        if let Self::Uint(value) = self { Some(*value) } else { None }
    }

    /// Returns the floating-point number, or `None` if the value has another type.
    #[must_use]
    pub fn as_double(&self) -> Option<f64> {
        if let Self::Double(value) = self { Some(*value) } else { None }
    }

    /// Returns the string, or `None` if the value has another type.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(value) = self { Some(value) } else { None }
    }

    /// Returns the bytes, or `None` if the value has another type.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        if let Self::Bytes(value) = self { Some(value) } else { None }
    }

    /// Returns the list, or `None` if the value has another type.
    #[must_use]
    pub fn as_list(&self) -> Option<&List<'v>> {
        if let Self::List(value) = self { Some(value) } else { None }
    }

    /// Returns the map or object, or `None` if the value has another type.
    #[must_use]
    pub fn as_map(&self) -> Option<&Map<'v>> {
        if let Self::Map(value) = self { Some(value) } else { None }
    }

    /// Returns the value of a library as its Rust type, or `None` if the value has another type.
    #[must_use]
    pub fn as_opaque<T: Opaque>(&self) -> Option<&T> {
        if let Self::Opaque(value) = self { value.as_any().downcast_ref() } else { None }
    }

    /// True if the value has a type, as far as it is known at run time. Items of lists are checked by the first one.
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

/// Conversions that fail with `no such overload` if the value has another type.
macro_rules! try_from {
    ($($read:ident: $ty:ty),* $(,)?) => {
        $(impl<'a, 'v> TryFrom<&'a Value<'v>> for $ty {
            type Error = EvalError;

            fn try_from(value: &'a Value<'v>) -> Result<Self, EvalError> {
                value.$read().ok_or_else(EvalError::no_such_overload)
            }
        })*
    };
}

try_from! {
    as_bool: bool,
    as_int: i64,
    as_uint: u64,
    as_double: f64,
    as_str: &'a str,
    as_bytes: &'a [u8],
    as_list: &'a List<'v>,
    as_map: &'a Map<'v>,
}
