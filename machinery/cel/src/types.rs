//! Types of the checker, and declared types, which describe JSON.
//!
//! Both are in one module because they refer to each other: an object type has fields, a field has a declaration, and a
//! declaration has a type.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::identifier::RESERVED;

/// Name of the type of optional values.
pub const OPTIONAL: &str = "optional_type";

/// A CEL type. Cheap to clone; compared by structure. Displayed as the checker prints it: `list(string)`, `timestamp`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Type {
    /// Dynamic: checked at run time.
    Dyn,
    /// Dynamic, but not iterable.
    Any,
    /// Type of an expression with a type error; compatible with all types.
    Error,
    /// `null_type`.
    Null,
    /// `bool`.
    Bool,
    /// `int`.
    Int,
    /// `uint`.
    Uint,
    /// `double`.
    Double,
    /// `string`.
    String,
    /// `bytes`.
    Bytes,
    /// `google.protobuf.Timestamp`.
    Timestamp,
    /// `google.protobuf.Duration`.
    Duration,
    /// `list(T)`.
    List(Arc<Type>),
    /// `map(K, V)`.
    Map(Arc<(Type, Type)>),
    /// `type(T)`, or `type` alone.
    Type(Option<Arc<Type>>),
    /// Type parameter of a declaration, or free variable of the checker.
    Param(Arc<str>),
    /// Object type, by name: declared with fields, or a type of a library without fields, such as `kubernetes.URL`.
    Object(Arc<ObjectType>),
    /// Abstract type with parameters and without fields: `optional_type(T)`, `net.IP`.
    Opaque(Arc<str>, Arc<[Type]>),
}

/// Declaration of a JSON value by a schema. Immutable; share it by [`Arc`].
#[derive(Debug)]
pub struct DeclType {
    /// Format of the JSON.
    pub kind: DeclKind,
    /// Type for the checker.
    pub ty: Type,
    /// True if the value may be null, which is CEL's `null`.
    pub nullable: bool,
    /// Maximum number of items, entries or characters, for cost estimates. `u64::MAX` if unbounded.
    pub max_elements: u64,
    /// Minimum size of the value in JSON, in bytes. Bounds how often it fits into a request.
    pub min_serialized_size: u64,
}

/// Format of a JSON value.
#[derive(Debug)]
#[non_exhaustive]
pub enum DeclKind {
    /// Any JSON. Numbers without a fraction are integers.
    Dyn,
    /// String or integer.
    IntOrString,
    /// JSON Boolean.
    Bool,
    /// JSON integer.
    Int,
    /// Number, with or without a fraction.
    Double,
    /// JSON string.
    String,
    /// String in base64, read as bytes.
    Bytes,
    /// String with a date (`2006-01-02`), read as a timestamp.
    Date,
    /// String in RFC 3339, read as a timestamp.
    DateTime,
    /// String with a duration, such as `90s`.
    Duration,
    /// JSON array.
    List {
        /// Declaration of the items.
        items: Arc<DeclType>,
        /// Equality of two such lists.
        kind: ListKind,
    },
    /// Object with arbitrary members of one declaration.
    Map {
        /// Declaration of the members' values.
        values: Arc<DeclType>,
    },
    /// Object with declared fields.
    Object(Arc<ObjectType>),
}

/// Equality of lists (`x-kubernetes-list-type`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListKind {
    /// Equal items in the same order.
    Atomic,
    /// Equal items in any order.
    Set,
    /// Equal items in any order, identified by these properties.
    Map(Box<[Arc<str>]>),
}

/// Field of a declared object.
#[derive(Clone, Debug)]
pub struct Field {
    /// Name in JSON.
    pub name: Arc<str>,
    /// Name in expressions: see [`escape`](crate::decl::escape).
    pub escaped: Arc<str>,
    /// Declaration of the value.
    pub of: Arc<DeclType>,
}

/// An object type. Compared by name.
#[derive(Debug)]
pub struct ObjectType {
    /// Name of the type.
    pub name: Arc<str>,
    /// Fields, sorted by escaped name.
    pub fields: Box<[Field]>,
    /// Source of further fields.
    pub extra_fields: Option<Arc<dyn FieldTypes>>,
}

/// Source of types that expressions may construct by name: `Object.spec{replicas: 3}`.
pub trait ObjectTypes: std::fmt::Debug + Send + Sync {
    /// Returns the type with this name, if it exists.
    fn find(&self, name: &str) -> Option<Type>;
}

/// Source of fields that are not declared, for the checker.
pub trait FieldTypes: std::fmt::Debug + Send + Sync {
    /// Returns the type of a field, if it exists.
    fn field(&self, name: &str) -> Option<Type>;
}

impl ObjectType {
    /// True for a type of a library, which has no known fields.
    pub(crate) fn is_of_library(&self) -> bool {
        self.fields.is_empty() && self.extra_fields.is_none() && self.name.starts_with("kubernetes.")
    }

    /// Returns the field with exactly this escaped name.
    pub(crate) fn field_by_escaped_name(&self, escaped: &str) -> Option<&Field> {
        let index = self.fields.binary_search_by(|field| (*field.escaped).cmp(escaped)).ok();
        index.map(|index| &self.fields[index])
    }

    /// Returns the type of the field with this escaped name.
    pub(crate) fn field_type(&self, escaped: &str) -> Option<Type> {
        let declared = self.field(escaped).map(|field| field.of.ty.clone());
        declared.or_else(|| self.extra_fields.as_ref()?.field(escaped))
    }

    /// Returns the field with this escaped name. Reserved words that parse as names need no escape.
    #[must_use]
    pub fn field(&self, escaped: &str) -> Option<&Field> {
        let reserved = || {
            RESERVED
                .contains(&escaped)
                .then(|| self.field_by_escaped_name(&format!("__{escaped}__")))
                .flatten()
        };
        self.field_by_escaped_name(escaped).or_else(reserved)
    }
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ObjectType {}

impl Hash for ObjectType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Type {
    /// Returns `list(items)`.
    #[must_use]
    pub fn list(items: Type) -> Self {
        Self::List(Arc::new(items))
    }

    /// Returns `map(keys, values)`.
    #[must_use]
    pub fn map(keys: Type, values: Type) -> Self {
        Self::Map(Arc::new((keys, values)))
    }

    /// Returns `type(of)`.
    #[must_use]
    pub fn type_of(of: Type) -> Self {
        Self::Type(Some(Arc::new(of)))
    }

    /// Returns a type parameter, such as `T`.
    #[must_use]
    pub fn param(name: &str) -> Self {
        Self::Param(Arc::from(name))
    }

    /// Returns an object type without fields.
    #[must_use]
    pub fn object(name: &str) -> Self {
        Self::Object(Arc::new(ObjectType {
            name: Arc::from(name),
            fields: Box::default(),
            extra_fields: None,
        }))
    }

    /// Returns an object type whose fields come from `fields`.
    #[must_use]
    pub fn open_object(name: &str, fields: Arc<dyn FieldTypes>) -> Self {
        let extra_fields = Some(fields);
        Self::Object(Arc::new(ObjectType { name: Arc::from(name), fields: Box::default(), extra_fields }))
    }

    /// Returns an abstract type without parameters.
    #[must_use]
    pub fn opaque(name: &str) -> Self {
        Self::Opaque(Arc::from(name), Arc::from([]))
    }

    /// Returns `optional_type(of)`.
    #[must_use]
    pub fn optional(of: Type) -> Self {
        Self::Opaque(Arc::from(OPTIONAL), Arc::from([of]))
    }

    /// Returns the type of the value in an optional type; `None` for other types.
    #[must_use]
    pub fn optional_of(&self) -> Option<&Type> {
        match self {
            Self::Opaque(name, of) if &**name == OPTIONAL => of.first(),
            _ => None,
        }
    }

    /// True for [`Type::Dyn`] and [`Type::Any`].
    #[must_use]
    pub fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any)
    }

    /// True for [`Type::Dyn`], [`Type::Any`] and [`Type::Error`].
    #[must_use]
    pub fn is_dyn_or_error(&self) -> bool {
        self.is_dyn() || matches!(self, Self::Error)
    }

    /// Returns the parameters: of items, of keys and values, of an abstract type.
    #[must_use]
    pub fn parameters(&self) -> Vec<&Type> {
        match self {
            Self::List(items) => vec![items],
            Self::Map(entry) => vec![&entry.0, &entry.1],
            Self::Type(Some(of)) => vec![of],
            Self::Opaque(_, of) => of.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the name at run time, without parameters: `google.protobuf.Timestamp`, `list`.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Dyn => "dyn",
            Self::Any => "any",
            Self::Error => "error",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Duration => "google.protobuf.Duration",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Type(_) => "type",
            Self::Object(object) => &object.name,
            Self::Param(name) | Self::Opaque(name, _) => name,
        }
    }
}

/// Prints the type as in messages of the checker: `list(string)`, `timestamp`, `!error!`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error => f.write_str("!error!"),
            Self::Null => f.write_str("null"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::Param(name) => f.write_str(name),
            other => write_parameters(f, other),
        }
    }
}

fn write_parameters(f: &mut fmt::Formatter<'_>, of: &Type) -> fmt::Result {
    f.write_str(of.name())?;
    let parameters = of.parameters();
    if parameters.is_empty() {
        return Ok(());
    }
    for (index, parameter) in parameters.into_iter().enumerate() {
        write!(f, "{}{parameter}", if index == 0 { "(" } else { ", " })?;
    }
    f.write_str(")")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_spelled_as_messages_show_them() {
        let map = Type::map(Type::String, Type::list(Type::Timestamp));
        assert_eq!(map.to_string(), "map(string, list(timestamp))");
        assert_eq!(Type::optional(Type::Int).to_string(), "optional_type(int)");
        assert_eq!(Type::type_of(Type::Null).to_string(), "type(null)");
        assert_eq!(Type::opaque("net.IP").to_string(), "net.IP");
    }
}
