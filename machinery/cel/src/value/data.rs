//! The types of values, which hold each other.

use std::sync::Arc;

use indexmap::IndexMap;
#[cfg(feature = "json")]
use serde_json::{Map as JsonMap, Value as Json};

use super::{Duration, Opaque, Text, Timestamp};
use crate::decl::DeclType;
use crate::types::Type;

/// What an expression evaluates to.
#[derive(Clone, Debug)]
pub enum Value<'v> {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// Text.
    String(Text<'v>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A list, computed or looked at.
    List(List<'v>),
    /// A map or an object with fields, computed or looked at.
    Map(Map<'v>),
    /// A point in time.
    Timestamp(Timestamp),
    /// A span of time.
    Duration(Duration),
    /// A type.
    Type(Arc<Type>),
    /// An optional value.
    Optional(Option<Arc<Value<'v>>>),
    /// A value of a library: an IP address, a quantity.
    Opaque(Arc<dyn Opaque>),
}

/// A list. Reading an item of a JSON array converts it, which fails for data that its declaration does not fit.
#[derive(Clone, Debug)]
pub enum List<'v> {
    /// Computed. `of` says which declared list it stems from: sets and lists of maps stay such when added to. Items are
    /// plain data then, read as the declaration says.
    Computed {
        /// The items.
        items: Arc<Vec<Value<'v>>>,
        /// The declaration of the list that was added to.
        of: Option<&'v DeclType>,
    },
    /// An array of JSON; `of` declares what is in it.
    #[cfg(feature = "json")]
    Json {
        /// The array.
        array: &'v [Json],
        /// The declaration of the whole list.
        of: &'v DeclType,
    },
}

/// A map or an object with fields.
#[derive(Clone, Debug)]
pub enum Map<'v> {
    /// Computed.
    Computed(Arc<MapBuilder<'v>>),
    /// An object that was written out, of a type by name.
    Object {
        /// The name of its type.
        name: Arc<str>,
        /// Its fields.
        fields: Arc<MapBuilder<'v>>,
    },
    /// An object of JSON; `of` declares fields, or what all entries are.
    #[cfg(feature = "json")]
    Json {
        /// The members.
        members: &'v JsonMap<String, Json>,
        /// The declaration of the whole.
        of: &'v DeclType,
    },
}

/// Entries of a computed map, in the order of insertion.
pub type MapBuilder<'v> = IndexMap<Key<'v>, Value<'v>>;

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
    /// What only stands for itself: null, other numbers, times, types, optionals of all these.
    Other(Box<Value<'v>>),
}
