//! Types as the checker knows them and their spelling in messages; declared types, which say how JSON is read.
//!
//! An object's type has fields, a field is declared, and a declaration has a type: so they are defined in one place. What
//! values there are is no business of this module.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::identifier::RESERVED;

/// The name of the type that optional values have.
pub const OPTIONAL: &str = "optional_type";

/// A type. Cheap to clone; equal when structurally equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Checked when evaluated.
    Dyn,
    /// The same, but nothing that may be iterated over.
    Any,
    /// What an expression in error has; compatible with everything.
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
    /// A type parameter of a declaration, or a free variable of the checker.
    Param(Arc<str>),
    /// An object, by name: a declared one with fields, or a library's type such as `kubernetes.URL` without any.
    Object(Arc<ObjectType>),
    /// An abstract type with parameters and without fields: `optional_type(T)`, `net.IP`.
    Opaque(Arc<str>, Arc<[Type]>),
}

/// What a schema says of one value. Immutable and shared.
#[derive(Debug)]
pub struct DeclType {
    /// What it is.
    pub kind: DeclKind,
    /// What the checker calls it.
    pub ty: Type,
    /// Whether null may stand here; it is then CEL's null.
    pub nullable: bool,
    /// Most items, entries, or bytes of text; what an estimate takes it for.
    pub max_elements: u64,
    /// Least bytes that it takes in JSON: how often it fits into one request.
    pub min_serialized_size: u64,
}

/// How JSON is read.
#[derive(Debug)]
pub enum DeclKind {
    /// Any JSON as it is: numbers without a fraction are integers.
    Dyn,
    /// Text or an integer.
    IntOrString,
    /// A boolean.
    Bool,
    /// An integer.
    Int,
    /// A number, with or without a fraction.
    Double,
    /// Text.
    String,
    /// Text in base64.
    Bytes,
    /// Text that is a day, `2006-01-02`.
    Date,
    /// Text that is a point in time.
    DateTime,
    /// Text that is a span of time.
    Duration,
    /// An array.
    List {
        /// What is in it.
        items: Arc<DeclType>,
        /// What makes two of them equal.
        kind: ListKind,
    },
    /// An object whose members are all alike.
    Map {
        /// What the members are.
        values: Arc<DeclType>,
    },
    /// An object with fields.
    Object(Arc<ObjectType>),
}

/// What makes two lists equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// One value as a whole.
    Atomic,
    /// In any order, each once.
    Set,
    /// In any order, identified by these properties.
    Map(Box<[Arc<str>]>),
}

/// A field of a declared object.
#[derive(Clone, Debug)]
pub struct Field {
    /// How JSON spells it.
    pub name: Arc<str>,
    /// How expressions spell it: see [`crate::identifier::escape`].
    pub escaped: Arc<str>,
    /// What it holds.
    pub of: Arc<DeclType>,
}

/// An object type. Two are one when their names are.
#[derive(Debug)]
pub struct ObjectType {
    /// Its name.
    pub name: Arc<str>,
    /// Its fields, sorted by their escaped names.
    pub fields: Box<[Field]>,
    /// Who knows further fields.
    pub further: Option<Arc<dyn FieldTypes>>,
}

/// Knows types that expressions may write out by name: `Object.spec{replicas: 3}`.
pub trait ObjectTypes: std::fmt::Debug + Send + Sync {
    /// The type of this name; nothing where there is none.
    fn find(&self, name: &str) -> Option<Type>;
}

/// Knows the fields of a type that no declaration lists, for the checker.
pub trait FieldTypes: std::fmt::Debug + Send + Sync {
    /// The type of a field; nothing where there is no such field.
    fn field(&self, name: &str) -> Option<Type>;
}

impl ObjectType {
    /// Whether it is a library's type, of which only the name is known.
    pub(crate) fn is_of_library(&self) -> bool {
        self.fields.is_empty() && self.further.is_none() && self.name.starts_with("kubernetes.")
    }

    /// The field with exactly this escaped name.
    pub(crate) fn spelled(&self, escaped: &str) -> Option<&Field> {
        let index = self.fields.binary_search_by(|field| (*field.escaped).cmp(escaped)).ok();
        index.map(|index| &self.fields[index])
    }

    /// The type of the field with this escaped name.
    pub(crate) fn field_type(&self, escaped: &str) -> Option<Type> {
        let declared = self.field(escaped).map(|field| field.of.ty.clone());
        declared.or_else(|| self.further.as_ref()?.field(escaped))
    }

    /// The field with this escaped name. Reserved words that parse as names need no escape.
    #[must_use]
    pub fn field(&self, escaped: &str) -> Option<&Field> {
        let reserved =
            || RESERVED.contains(&escaped).then(|| self.spelled(&format!("__{escaped}__"))).flatten();
        self.spelled(escaped).or_else(reserved)
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
    /// `list(items)`.
    #[must_use]
    pub fn list(items: Type) -> Self {
        Self::List(Arc::new(items))
    }

    /// `map(keys, values)`.
    #[must_use]
    pub fn map(keys: Type, values: Type) -> Self {
        Self::Map(Arc::new((keys, values)))
    }

    /// `type(of)`.
    #[must_use]
    pub fn type_of(of: Type) -> Self {
        Self::Type(Some(Arc::new(of)))
    }

    /// A type parameter, such as `T`.
    #[must_use]
    pub fn param(name: &str) -> Self {
        Self::Param(Arc::from(name))
    }

    /// An object type by name, without fields.
    #[must_use]
    pub fn object(name: &str) -> Self {
        Self::Object(Arc::new(ObjectType { name: Arc::from(name), fields: Box::default(), further: None }))
    }

    /// An object type by name whose fields somebody else knows.
    #[must_use]
    pub fn open_object(name: &str, fields: Arc<dyn FieldTypes>) -> Self {
        let further = Some(fields);
        Self::Object(Arc::new(ObjectType { name: Arc::from(name), fields: Box::default(), further }))
    }

    /// An abstract type without parameters.
    #[must_use]
    pub fn opaque(name: &str) -> Self {
        Self::Opaque(Arc::from(name), Arc::from([]))
    }

    /// `optional_type(of)`.
    #[must_use]
    pub fn optional(of: Type) -> Self {
        Self::Opaque(Arc::from(OPTIONAL), Arc::from([of]))
    }

    /// What an optional type holds.
    #[must_use]
    pub fn optional_of(&self) -> Option<&Type> {
        match self {
            Self::Opaque(name, of) if &**name == OPTIONAL => of.first(),
            _ => None,
        }
    }

    /// Whether it is checked only when evaluated.
    #[must_use]
    pub fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any)
    }

    /// Whether it is dyn or stems from an error.
    #[must_use]
    pub fn is_dyn_or_error(&self) -> bool {
        self.is_dyn() || matches!(self, Self::Error)
    }

    /// Its parameters: items, keys and values, what an opaque type is of.
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

    /// Its name at run time, without parameters: `google.protobuf.Timestamp`, `list`.
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

/// As messages of the checker spell it: `list(string)`, `timestamp`, `!error!`.
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
