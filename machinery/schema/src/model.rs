//! Model of types and their fields, interned in a set so that types may refer to each other and to themselves.
//!
//! The model of a field contains all that decoding, defaulting, validation, merging, apply, protobuf and OpenAPI need.

mod layout;
mod set;

pub(crate) use layout::{ProtoField, ProtoFieldContent};
pub use set::{BuildError, TypeSet, TypeSetBuilder};

use serde_json::Value;

/// Index of a type in its [`TypeSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub(crate) u32);

/// A struct with fields, or a named plain value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Type {
    /// Name as OpenAPI prints it, such as `io.k8s.api.core.v1.ServiceSpec`.
    pub name: Box<str>,
    /// Kinds that are served with this type, as `group/version/kind`.
    pub gvks: Vec<Box<str>>,
    /// Granularity at which apply merges values of this type.
    pub map_type: MapType,
    /// Fields in JSON order, which is the order of upstream's Go types.
    pub fields: Vec<Field>,
    /// Embedded protobuf messages that contain some of the fields: path and field number.
    pub embedded_messages: Vec<(Box<str>, u32)>,
    /// Groups of fields of which at most one should be set.
    pub unions: Vec<Union>,
    /// Underlying type, if this type is a named plain value and no struct (`Time`, `IntOrString`, `FieldsV1`).
    pub plain: Option<FieldType>,
    /// Shapes and field numbers of a plain type that protobuf encodes as a message with one field per JSON shape.
    pub message: Option<Vec<(FieldType, u32)>>,
    /// Indices into `fields`, sorted by field name.
    pub(crate) by_name: Vec<u16>,
    /// Fields by protobuf number.
    pub(crate) layout: Box<[ProtoField]>,
    /// True if a field of this type or of a nested type has a default.
    pub(crate) has_defaults: bool,
    /// True if a field of this type or of a nested type has a rule.
    pub(crate) has_rules: bool,
}

impl Type {
    /// Returns the field of this name (case-sensitive).
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.field_index(name).map(|i| &self.fields[i])
    }

    pub(crate) fn field_index(&self, name: &str) -> Option<usize> {
        self.by_name
            .binary_search_by(|i| self.fields[usize::from(*i)].name.as_ref().cmp(name))
            .ok()
            .map(|index| usize::from(self.by_name[index]))
    }

    /// Returns the fields sorted by name.
    pub(crate) fn fields_by_name(&self) -> impl Iterator<Item = &Field> {
        self.by_name.iter().map(|index| &self.fields[usize::from(*index)])
    }

    /// Returns the last part of the name, such as `ServiceSpec`, which decoding errors print.
    #[must_use]
    pub fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }
}

/// Fields of which at most one should be set. Published in OpenAPI and not validated.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Union {
    /// Field that contains the name of the field that is set.
    pub discriminator: Option<Box<str>>,
    /// Names of the fields, sorted.
    pub fields: Vec<Box<str>>,
}

/// One field of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// JSON name.
    pub name: Box<str>,
    pub ty: FieldType,
    /// Go type that upstream's errors print, if it is a named type: `[]v1.KeyUsage`.
    pub go_type: Option<Box<str>>,
    /// Protobuf field number, 0 for `kind` and `apiVersion`.
    pub number: u32,
    /// Path of the embedded protobuf message that contains the field.
    pub embedded_in: Option<Box<str>>,
    /// Listed as required in OpenAPI.
    pub required: bool,
    /// Rule that decides if the field is printed.
    pub emit: Emit,
    /// Default that OpenAPI shows. A zero value here is not applied as a default.
    pub openapi_default: Option<Value>,
    /// Default that the server sets if the field is absent (or, for fields that are not pointers, zero).
    pub default: Option<Value>,
    /// Merge strategy of apply for a list.
    pub list_type: Option<ListType>,
    /// Keys of a list that apply treats as a map.
    pub list_keys: Vec<Box<str>>,
    /// Merge strategy of apply for a map or struct.
    pub map_type: Option<MapType>,
    /// Behavior of the field in strategic merge patches.
    pub patch: PatchStrategy,
    /// Key by which strategic merge patch finds elements of a list.
    pub merge_key: Option<Box<str>>,
    /// Values that OpenAPI lists.
    pub enumeration: Vec<Box<str>>,
    /// Rules that generic validation checks.
    pub rules: Rules,
}

/// Rules of one field that generic validation checks. Omitted for built-in kinds whose strategy has its own messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// True if only the values of `enumeration` are accepted.
    pub enumerated: bool,
    /// True if the field must not be absent or empty.
    pub not_empty: bool,
    /// Smallest accepted number.
    pub minimum: Option<i64>,
    /// Largest accepted number.
    pub maximum: Option<i64>,
    /// Maximum length of a string in bytes, or of a list in elements.
    pub max_length: Option<usize>,
    /// True if the field must not change after creation.
    pub immutable: bool,
}

/// Type of the values of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldType {
    String,
    /// Signed 32-bit integer.
    Int32,
    /// Signed 64-bit integer.
    Int64,
    Bool,
    /// Any JSON number.
    Number,
    /// Bytes, base64 in JSON.
    Bytes,
    /// RFC 3339 time in whole seconds.
    Time,
    /// RFC 3339 time with exactly six fraction digits.
    MicroTime,
    /// Quantity in canonical form.
    Quantity,
    /// 32-bit integer or string.
    IntOrString,
    /// Any JSON value.
    Any,
    /// Any JSON object (RawExtension, FieldsV1).
    AnyObject,
    List(Box<FieldType>),
    /// Map with string keys.
    Map(Box<FieldType>),
    /// Another type of the set.
    Ref(TypeId),
}

/// Rule that decides if a field is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emit {
    /// Print if the value is not empty or zero (Go's `omitempty`).
    #[default]
    OmitEmpty,
    /// Always print: an absent list or map as null, an absent scalar as its zero value.
    Always,
    /// Always print: an absent struct as `{}`, an absent time as null.
    Struct,
    /// Print if set, including to the zero value.
    Pointer,
    /// Always print; null if not set (including pointers).
    Nullable,
    /// Print if the value is not the zero value (Go's `omitzero`).
    OmitZero,
}

impl Emit {
    /// True if the field is a pointer upstream, so that absent and zero differ.
    #[must_use]
    pub fn is_pointer(self) -> bool {
        matches!(self, Self::Pointer | Self::Nullable)
    }
}

/// Merge strategy of apply for a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// Replaced as one value.
    Atomic,
    /// Merged as a set of scalars.
    Set,
    /// Merged as a map by its keys.
    Map,
}

/// Merge strategy of apply for a map or struct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapType {
    /// Merged field by field.
    #[default]
    Granular,
    /// Replaced as one value.
    Atomic,
}

/// Behavior of a field in strategic merge patches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Lists are merged by key, or as sets of scalars.
    pub merge: bool,
    /// Maps retain only the keys that `$retainKeys` lists.
    pub retain_keys: bool,
    /// Maps and lists are replaced as a whole.
    pub replace: bool,
}
