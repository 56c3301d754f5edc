//! The model: what a schema says of one place of an object.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::format::Format;
pub use super::json_type::JsonType;
use super::pattern::Pattern;
use crate::model::{ListType, MapType};

/// Named fields and what they hold, sorted by name.
pub type Properties = Box<[(Arc<str>, Arc<Node>)]>;

/// One place of the schema; also a branch of a junctor, which then says less.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// The JSON type; nothing for int-or-string, for what is preserved without a type, and in logical operators.
    pub ty: Option<JsonType>,
    /// Null is a value.
    pub nullable: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded: bool,
    /// What an absent value becomes; never null.
    pub default: Option<Value>,
    /// Named fields, sorted by name.
    pub properties: Properties,
    /// Which of them have a default: walks that set defaults pass over the others.
    pub defaulted: Box<[u32]>,
    /// What other fields hold.
    pub additional: Additional,
    /// What the elements of a list hold.
    pub items: Option<Arc<Node>>,
    /// `x-kubernetes-list-type`.
    pub list_type: Option<ListType>,
    /// `x-kubernetes-list-map-keys`.
    pub list_keys: Box<[Box<str>]>,
    /// `x-kubernetes-map-type`.
    pub map_type: MapType,
    /// What else values must satisfy.
    pub checks: Option<Arc<Checks>>,
    /// `x-kubernetes-validations`, in order.
    pub rules: Box<[Rule]>,
    /// What there is here or below.
    pub marks: Marks,
}

// Numbers of a schema come from JSON, which has no NaN.
impl Eq for Node {}

impl Node {
    /// The named field.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&Arc<Self>> {
        let at = self.properties.binary_search_by(|(key, _)| (**key).cmp(name)).ok()?;
        Some(&self.properties[at].1)
    }

    /// The named fields that have a default.
    pub(super) fn defaulted(&self) -> impl Iterator<Item = &(Arc<str>, Arc<Self>)> {
        self.defaulted.iter().filter_map(|at| self.properties.get(usize::try_from(*at).ok()?))
    }

    /// What the schema says of a field, named or not: nothing where it says nothing.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Arc<Self>> {
        self.property(name).or_else(|| self.additional.schema())
    }

    /// Whether a null here goes: it is neither allowed nor stands for a default.
    pub(super) fn drops_null(&self) -> bool {
        !self.nullable && self.default.is_none()
    }
}

/// What fields hold that are not named.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Additional {
    /// The schema does not mention them: they are unknown.
    #[default]
    Absent,
    /// `true`: fields of any name; nothing is known of their values, so maps in them lose their fields.
    Any,
    /// `false`: as [`Self::Any`] for pruning, refused by validation.
    No,
    /// Values of this schema.
    Schema(Arc<Node>),
}

impl Additional {
    /// The schema of the values, where there is one.
    #[must_use]
    pub fn schema(&self) -> Option<&Arc<Node>> {
        match self {
            Self::Schema(node) => Some(node),
            _ => None,
        }
    }
}

/// What values must satisfy besides their type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checks {
    /// A known format of this type.
    pub format: Option<Format>,
    /// The values that are allowed, all when empty.
    pub enumeration: Box<[Value]>,
    /// The texts among very many of them: each element of a list may be compared with each.
    pub enumerated_texts: Option<HashSet<Box<str>>>,
    /// The greatest number.
    pub maximum: Option<Bound>,
    /// The least number.
    pub minimum: Option<Bound>,
    /// What numbers are a multiple of.
    pub multiple_of: Option<f64>,
    /// Most code points.
    pub max_length: Option<i64>,
    /// Least code points.
    pub min_length: Option<i64>,
    /// What strings must match somewhere.
    pub pattern: Option<Arc<Pattern>>,
    /// Most elements.
    pub max_items: Option<i64>,
    /// Least elements.
    pub min_items: Option<i64>,
    /// Most fields.
    pub max_properties: Option<i64>,
    /// Least fields.
    pub min_properties: Option<i64>,
    /// Fields that must be there.
    pub required: Box<[Arc<str>]>,
    /// Schemas that must all hold.
    pub all_of: Box<[Arc<Node>]>,
    /// Schemas of which one must hold.
    pub any_of: Box<[Arc<Node>]>,
    /// Schemas of which exactly one must hold.
    pub one_of: Box<[Arc<Node>]>,
    /// A schema that must not hold.
    pub not: Option<Arc<Node>>,
}

impl Checks {
    /// Whether any junctor stands here.
    #[must_use]
    pub fn has_logical_operators(&self) -> bool {
        let lists = [&self.all_of, &self.any_of, &self.one_of];
        self.not.is_some() || lists.iter().any(|list| !list.is_empty())
    }

    /// All schemas under logical operators.
    pub(super) fn branches(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.all_of.iter().chain(&self.any_of).chain(&self.one_of).chain(&self.not)
    }
}

/// A bound of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The number.
    pub value: f64,
    /// Whether the number itself is out of bounds.
    pub exclusive: bool,
}

/// One of `x-kubernetes-validations`, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The expression.
    pub rule: Arc<str>,
    /// What to say when it fails.
    pub message: Arc<str>,
    /// An expression for what to say.
    pub message_expression: Arc<str>,
    /// The error's reason, `FieldValueInvalid` when absent.
    pub reason: Option<Arc<str>>,
    /// Where the error belongs, relative to the rule's place; empty for that place.
    pub field_path: Arc<str>,
    /// Whether it also runs where there is no old value; absent and false are the same to evaluation.
    pub optional_old_self: Option<bool>,
}

/// What there is at a node or below it (logical operators left out), so that walks skip the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a subtree")]
pub struct Marks {
    /// Defaults.
    pub defaults: bool,
    /// Rules.
    pub rules: bool,
    /// Lists that are sets or maps.
    pub unique_lists: bool,
    /// Embedded resources.
    pub embedded: bool,
}

impl Marks {
    /// What is in either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            defaults: self.defaults || other.defaults,
            rules: self.rules || other.rules,
            unique_lists: self.unique_lists || other.unique_lists,
            embedded: self.embedded || other.embedded,
        }
    }
}
