//! Features that a schema uses at any level.

use portico_machinery::Cursor;

use super::errors::Errors;
use super::props::Props;
use super::visit::visit;
use super::{lists, nodes};
use crate::structural::location::Location;

/// Features of a schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchemaFeatures {
    /// Has a default.
    pub defaults: bool,
    /// Has an `x-kubernetes-` extension other than the map type.
    pub extensions: bool,
    /// Has a type that OpenAPI v3 does not define.
    pub unknown_types: bool,
    /// Has a set whose items are not atomic.
    pub loose_sets: bool,
    /// Has a set or map of nullable items, or a map whose keys may be missing.
    pub loose_keys: bool,
}

impl SchemaFeatures {
    /// Returns the features of both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self {
            defaults: self.defaults || other.defaults,
            extensions: self.extensions || other.extensions,
            unknown_types: self.unknown_types || other.unknown_types,
            loose_sets: self.loose_sets || other.loose_sets,
            loose_keys: self.loose_keys || other.loose_keys,
        }
    }
}

/// Returns the features of a schema.
#[must_use]
pub fn features(schema: &Cursor<'_>) -> SchemaFeatures {
    let mut found = SchemaFeatures::default();
    if let Some(schema) = schema.value() {
        visit(schema, &mut |props| found = found.union(features_of_node(props)));
    }
    found
}

fn features_of_node(props: &Props<'_>) -> SchemaFeatures {
    let mut errors = Errors::default();
    lists::strict_keys(props, &Location::root(""), &mut errors);
    SchemaFeatures {
        defaults: props.default.is_some(),
        extensions: props.embedded
            || props.preserve_unknown.is_some()
            || props.int_or_string
            || !props.list_keys.is_empty()
            || props.list_type.is_some()
            || !props.rules.is_empty(),
        unknown_types: !props.ty.is_empty() && !nodes::TYPES.contains(&props.ty),
        loose_sets: lists::has_non_atomic_items(props),
        loose_keys: !errors.is_empty(),
    }
}
