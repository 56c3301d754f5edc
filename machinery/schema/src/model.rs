//! The model: types and their fields, interned in a set so that they may refer to each other and to themselves.
//!
//! What the model says of a field is all that decoding, defaulting, validation, merging, apply, protobuf and OpenAPI need.

mod layout;
mod set;

pub(crate) use layout::{Part, Slot};
pub use set::{BuildError, TypeSet, TypeSetBuilder};

use serde_json::Value;

/// The place of a type in its [`TypeSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub(crate) u32);

/// A type: a struct of fields, or another name for a plain value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Type {
    /// The name as OpenAPI prints it, `io.k8s.api.core.v1.ServiceSpec`.
    pub name: Box<str>,
    /// `group/version/kind` of what is served under this type.
    pub gvks: Vec<Box<str>>,
    /// Whether apply treats a value of this type as one.
    pub map_type: MapType,
    /// Fields in the order of JSON, which is that of upstream's Go types.
    pub fields: Vec<Field>,
    /// Embedded protobuf messages that hold some of the fields: path and own number.
    pub inline: Vec<(Box<str>, u32)>,
    /// Fields of which at most one is meant to be set.
    pub unions: Vec<Union>,
    /// Set for a type that is no struct but a name for this (`Time`, `IntOrString`, `FieldsV1`).
    pub plain: Option<FieldType>,
    /// Set for a plain type that protobuf writes as a message with one field for each JSON shape: shapes and numbers.
    pub message: Option<Vec<(FieldType, u32)>>,
    /// Places in `fields`, sorted by name.
    pub(crate) by_name: Vec<u16>,
    /// Where protobuf puts the fields.
    pub(crate) layout: Box<[Slot]>,
    /// Whether a field here or below has a default.
    pub(crate) has_defaults: bool,
    /// Whether a field here or below has a rule.
    pub(crate) has_rules: bool,
}

impl Type {
    /// The field of this name, case as given.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.field_index(name).map(|i| &self.fields[i])
    }

    pub(crate) fn field_index(&self, name: &str) -> Option<usize> {
        self.by_name
            .binary_search_by(|i| self.fields[usize::from(*i)].name.as_ref().cmp(name))
            .ok()
            .map(|at| usize::from(self.by_name[at]))
    }

    /// The fields sorted by name.
    pub(crate) fn fields_by_name(&self) -> impl Iterator<Item = &Field> {
        self.by_name.iter().map(|at| &self.fields[usize::from(*at)])
    }

    /// The last part of the name, `ServiceSpec`: what decoding errors print.
    #[must_use]
    pub fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }
}

/// Fields of which at most one is meant to be set, as OpenAPI declares; nothing is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Union {
    /// The field that names the one that is set.
    pub discriminator: Option<Box<str>>,
    /// The fields, sorted.
    pub fields: Vec<Box<str>>,
}

/// One field of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The JSON name.
    pub name: Box<str>,
    /// What it holds.
    pub ty: FieldType,
    /// What upstream's errors call it, where that has a name of its own there: `[]v1.KeyUsage`.
    pub go: Option<Box<str>>,
    /// The protobuf field number, 0 for `kind` and `apiVersion`.
    pub number: u32,
    /// The embedded protobuf message that holds the field, as a path.
    pub inside: Option<Box<str>>,
    /// Listed as required in OpenAPI.
    pub required: bool,
    /// When it is printed.
    pub emit: Emit,
    /// The default that OpenAPI shows, which for zero values is no default at all.
    pub openapi_default: Option<Value>,
    /// The default that the server sets when the field is absent (or, for fields that are no pointers, zero).
    pub default: Option<Value>,
    /// How apply merges a list.
    pub list_type: Option<ListType>,
    /// The keys of a list that apply treats as a map.
    pub list_keys: Vec<Box<str>>,
    /// How apply merges a map or struct.
    pub map_type: Option<MapType>,
    /// How strategic merge patch treats the field.
    pub patch: PatchStrategy,
    /// The key by which strategic merge patch finds elements of a list.
    pub merge_key: Option<Box<str>>,
    /// Values that OpenAPI lists.
    pub enumeration: Vec<Box<str>>,
    /// Rules that generic validation checks.
    pub rules: Rules,
}

/// Rules of one field that generic validation checks; a built-in kind whose strategy has its own texts leaves them out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// Only the values of `enumeration` are accepted.
    pub enumerated: bool,
    /// Must not be absent or empty.
    pub not_empty: bool,
    /// The least number.
    pub minimum: Option<i64>,
    /// The greatest number.
    pub maximum: Option<i64>,
    /// Longest string in bytes, or most elements.
    pub max_length: Option<usize>,
    /// May not change once the object exists.
    pub immutable: bool,
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldType {
    /// A string.
    String,
    /// A signed number of 32 bits.
    Int32,
    /// A signed number of 64 bits.
    Int64,
    /// A truth value.
    Bool,
    /// Any JSON number.
    Number,
    /// Bytes, base64 in JSON.
    Bytes,
    /// RFC 3339, whole seconds.
    Time,
    /// RFC 3339 with exactly six fraction digits.
    MicroTime,
    /// A quantity, canonical.
    Quantity,
    /// A number of 32 bits or a string.
    IntOrString,
    /// Any JSON.
    Any,
    /// Any JSON object (RawExtension, FieldsV1).
    AnyObject,
    /// A list.
    List(Box<FieldType>),
    /// A map with string keys.
    Map(Box<FieldType>),
    /// Another type of the set.
    Ref(TypeId),
}

/// When a field is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emit {
    /// Only when it is not empty or zero.
    #[default]
    Absent,
    /// Also when empty: an absent list or map is null, an absent scalar its zero value.
    Always,
    /// Always; an absent struct is `{}`, an absent time null.
    Struct,
    /// When set, be it to zero.
    Pointer,
    /// Always; null when not set (a pointer, too).
    Nullable,
    /// When its value is not the zero value.
    Nonzero,
}

impl Emit {
    /// Whether the field is a pointer upstream: absent and zero are not the same.
    #[must_use]
    pub fn is_pointer(self) -> bool {
        matches!(self, Self::Pointer | Self::Nullable)
    }
}

/// How apply merges a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// As one value.
    Atomic,
    /// As a set of scalars.
    Set,
    /// As a map by its keys.
    Map,
}

/// How apply merges a map or struct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapType {
    /// Field by field.
    #[default]
    Granular,
    /// As one value.
    Atomic,
}

/// How strategic merge patch treats a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Lists are merged: by key, or as sets of scalars.
    pub merge: bool,
    /// Maps keep only the keys that `$retainKeys` names.
    pub retain_keys: bool,
    /// Maps and lists are replaced whole.
    pub replace: bool,
}
