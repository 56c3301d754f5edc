//! Types of values, which are mutually recursive.

use std::sync::Arc;

use indexmap::IndexMap;
#[cfg(feature = "json")]
use serde_json::{Map as JsonMap, Value as Json};

use super::{Duration, Opaque, Text, Timestamp};
use crate::decl::DeclType;
use crate::types::Type;

/// A CEL value.
#[derive(Clone, Debug)]
pub enum Value<'v> {
    /// `null`.
    Null,
    /// CEL Boolean.
    Bool(bool),
    /// Signed integer.
    Int(i64),
    /// Unsigned integer.
    Uint(u64),
    /// Floating-point number.
    Double(f64),
    /// CEL string.
    String(Text<'v>),
    /// Byte string.
    Bytes(Arc<[u8]>),
    /// List, computed or borrowed from JSON.
    List(List<'v>),
    /// Map or object, computed or borrowed from JSON.
    Map(Map<'v>),
    /// Point in time.
    Timestamp(Timestamp),
    /// Span of time.
    Duration(Duration),
    /// Type, as returned by `type(x)`.
    Type(Arc<Type>),
    /// Optional value.
    Optional(Option<Arc<Value<'v>>>),
    /// Value of a library, such as an IP address or a quantity.
    Opaque(Arc<dyn Opaque>),
}

/// A list. Items of a JSON array are converted when they are read, which fails if they do not match the declaration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum List<'v> {
    /// Computed list. If items were added to a declared list, `of` is its declaration, which determines the
    /// equality of the result.
    Computed {
        /// Items of the list.
        items: Arc<Vec<Value<'v>>>,
        /// Declaration of the list that items were added to.
        of: Option<&'v DeclType>,
    },
    /// JSON array.
    #[cfg(feature = "json")]
    Json {
        /// JSON array.
        array: &'v [Json],
        /// Declaration of the list.
        of: &'v DeclType,
    },
}

/// A map or object.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Map<'v> {
    /// Computed map.
    Computed(Arc<MapBuilder<'v>>),
    /// Object constructed by the expression.
    Object {
        /// Name of its type.
        name: Arc<str>,
        /// Fields of the object.
        fields: Arc<MapBuilder<'v>>,
    },
    /// JSON object.
    #[cfg(feature = "json")]
    Json {
        /// Members of the JSON object.
        members: &'v JsonMap<String, Json>,
        /// Declaration of the object or map.
        of: &'v DeclType,
    },
}

/// Entries of a computed map, in the order of insertion.
pub type MapBuilder<'v> = IndexMap<Key<'v>, Value<'v>>;

/// A key of a computed map.
#[derive(Clone, Debug)]
pub enum Key<'v> {
    /// Boolean key.
    Bool(bool),
    /// Signed integer.
    Int(i64),
    /// Unsigned integer.
    Uint(u64),
    /// String key.
    String(Text<'v>),
    /// Any other key: null, doubles, times, types and optionals, compared by representation.
    Other(Box<Value<'v>>),
}
