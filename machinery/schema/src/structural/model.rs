//! Model of a compiled schema.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::format::Format;
pub use super::json_type::JsonType;
use super::pattern::Pattern;
use crate::model::{ListType, MapType};

/// Named fields with their schemas, sorted by name.
pub type Properties = Box<[(Arc<str>, Arc<SchemaNode>)]>;

/// Node of a schema, or a branch of a logical operator, which has fewer members.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemaNode {
    /// JSON type. `None` for int-or-string, for preserved values without a type, and in logical operators.
    pub ty: Option<JsonType>,
    /// True if null is allowed.
    pub nullable: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded: bool,
    /// Default of an absent value; never null.
    pub default: Option<Value>,
    /// Named fields, sorted by name.
    pub properties: Properties,
    /// Indices of the properties that have a default, so that defaulting skips all others.
    pub default_indices: Box<[u32]>,
    /// Schema of other fields.
    pub additional: Additional,
    /// Schema of the elements of a list.
    pub items: Option<Arc<SchemaNode>>,
    /// `x-kubernetes-list-type`.
    pub list_type: Option<ListType>,
    /// `x-kubernetes-list-map-keys`.
    pub list_keys: Box<[Box<str>]>,
    /// `x-kubernetes-map-type`.
    pub map_type: MapType,
    /// Requirements beyond the type.
    pub checks: Option<Arc<Checks>>,
    /// `x-kubernetes-validations`, in order.
    pub rules: Box<[Rule]>,
    /// Features of this node and of the nodes below.
    pub subtree_flags: SubtreeFlags,
}

// Numbers of a schema come from JSON, which has no NaN.
impl Eq for SchemaNode {}

impl SchemaNode {
    /// Returns the schema of a named field.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&Arc<Self>> {
        let index = self.properties.binary_search_by(|(key, _)| (**key).cmp(name)).ok()?;
        Some(&self.properties[index].1)
    }

    /// Returns the named fields that have a default.
    pub(super) fn defaulted_properties(&self) -> impl Iterator<Item = &(Arc<str>, Arc<Self>)> {
        self.default_indices.iter().filter_map(|index| self.properties.get(usize::try_from(*index).ok()?))
    }

    /// Returns the schema of a field, named or not. Returns `None` if the schema does not describe it.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Arc<Self>> {
        self.property(name).or_else(|| self.additional.schema())
    }

    /// True if nulls of this node are dropped: null is not allowed, and there is no default.
    pub(super) fn drops_null(&self) -> bool {
        !self.nullable && self.default.is_none()
    }
}

/// Schema of fields that are not named.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Additional {
    /// Absent from the schema: other fields are unknown.
    #[default]
    Absent,
    /// `true`: fields of any name. Their values have no schema, so maps in them lose their fields.
    Any,
    /// `false`: same as [`Self::Any`] for pruning, rejected by validation.
    Forbidden,
    /// Schema of all values.
    Schema(Arc<SchemaNode>),
}

impl Additional {
    /// Returns the schema of the values, if any.
    #[must_use]
    pub fn schema(&self) -> Option<&Arc<SchemaNode>> {
        match self {
            Self::Schema(node) => Some(node),
            _ => None,
        }
    }
}

/// Requirements of values beyond their type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checks {
    /// Known format of this type.
    pub format: Option<Format>,
    /// Allowed values; empty if all values are allowed.
    pub enumeration: Box<[Value]>,
    /// Strings of a large enumeration, for lookups: each element of a list may have to be compared with all of them.
    pub enumerated_texts: Option<HashSet<Box<str>>>,
    /// Upper bound of a number.
    pub maximum: Option<Bound>,
    /// Lower bound of a number.
    pub minimum: Option<Bound>,
    /// Number of which values are multiples.
    pub multiple_of: Option<f64>,
    /// Maximum length in code points.
    pub max_length: Option<i64>,
    /// Minimum length in code points.
    pub min_length: Option<i64>,
    /// Regular expression that must match somewhere in a string.
    pub pattern: Option<Arc<Pattern>>,
    /// Maximum number of elements.
    pub max_items: Option<i64>,
    /// Minimum number of elements.
    pub min_items: Option<i64>,
    /// Maximum number of fields.
    pub max_properties: Option<i64>,
    /// Minimum number of fields.
    pub min_properties: Option<i64>,
    /// Names of required fields.
    pub required: Box<[Arc<str>]>,
    /// Schemas that must all match.
    pub all_of: Box<[Arc<SchemaNode>]>,
    /// Schemas of which at least one must match.
    pub any_of: Box<[Arc<SchemaNode>]>,
    /// Schemas of which exactly one must match.
    pub one_of: Box<[Arc<SchemaNode>]>,
    /// Schema that must not match.
    pub not: Option<Arc<SchemaNode>>,
}

impl Checks {
    /// True if there are logical operators.
    #[must_use]
    pub fn has_logical_operators(&self) -> bool {
        let lists = [&self.all_of, &self.any_of, &self.one_of];
        self.not.is_some() || lists.iter().any(|list| !list.is_empty())
    }

    /// Returns all schemas under logical operators.
    pub(super) fn branches(&self) -> impl Iterator<Item = &Arc<SchemaNode>> {
        self.all_of.iter().chain(&self.any_of).chain(&self.one_of).chain(&self.not)
    }
}

/// Bound of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Limit of the number.
    pub value: f64,
    /// True if the limit itself is out of bounds.
    pub exclusive: bool,
}

/// Entry of `x-kubernetes-validations`, unparsed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rule {
    /// CEL expression.
    pub rule: Arc<str>,
    /// Message if the rule fails.
    pub message: Arc<str>,
    /// CEL expression that returns the message.
    pub message_expression: Arc<str>,
    /// Reason of the error, `FieldValueInvalid` if `None`.
    pub reason: Option<Arc<str>>,
    /// Path of the error, relative to the value of the rule; empty for that value.
    pub field_path: Arc<str>,
    /// True if the rule also runs without an old value. `None` and false are equivalent in evaluation.
    pub optional_old_self: Option<bool>,
}

/// Features of a node and of the nodes below it (excluding logical operators), so that walks can skip subtrees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a subtree")]
pub struct SubtreeFlags {
    /// Has defaults.
    pub defaults: bool,
    /// Has rules.
    pub rules: bool,
    /// Has lists that are sets or maps.
    pub unique_lists: bool,
    /// Has embedded resources.
    pub embedded: bool,
}

impl SubtreeFlags {
    /// Returns the features of both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self {
            defaults: self.defaults || other.defaults,
            rules: self.rules || other.rules,
            unique_lists: self.unique_lists || other.unique_lists,
            embedded: self.embedded || other.embedded,
        }
    }
}
