//! What a definition's schema (`openAPIV3Schema`) may say: upstream's rules for it, over the raw JSON.
//!
//! Errors come in upstream's order, with its paths and texts; the caller says where the schema stands. Nothing here knows
//! what a schema does to objects: that is the compiled model's business.

mod complaints;
mod completeness;
mod defaults;
mod field_path;
mod formats;
mod internal;
mod invariants;
mod limits;
mod lists;
mod metadata;
mod nested;
mod nodes;
mod pattern;
mod props;
mod refused;
mod root;
mod rules;
mod traits;

pub use defaults::Metadata;
pub use field_path::{Found, resolve};
pub(super) use field_path::{Tokens, quoted};
pub use formats::unrecognized;
pub use internal::{rule_as_held, schema_as_held};
pub use limits::{
    MAX_BRANCHES, MAX_LIST_MAP_KEYS, MAX_PATTERN_BYTES, MAX_PROPERTY_NAME_BYTES, MAX_REQUIRED, MAX_RULES,
};
pub(super) use refused::refused;
pub use traits::{Traits, traits};

#[cfg(test)]
mod tests;

use portico_machinery::field::Error;
use portico_machinery::status::{MOST_CAUSES_BYTES, MOST_FIELD_ERRORS};
use portico_machinery::{Bounded, Cursor};
use serde_json::Value;

use super::at::At;
use props::Props;
use traits::Survey;

use super::CompileError;
use super::rules::definition::validate as rules_of;

/// How many errors of one schema are kept: enough to report the first thousand of them in order.
const MOST_ERRORS: usize = 10 * MOST_FIELD_ERRORS;
/// How many bytes they may hold.
const MAX_ERRORS_BYTES: usize = 4 * MOST_CAUSES_BYTES;

/// What is demanded of a schema. Old definitions keep what was let through before (1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The schema must be structural.
    pub structural: bool,
    /// Types must be those of OpenAPI v3.
    pub known_types: bool,
    /// Defaults must hold nothing that the schema does not know.
    pub pruned_defaults: bool,
    /// Items of sets must be atomic.
    pub atomic_sets: bool,
    /// Items of sets and maps must not be nullable, keys of maps must be there.
    pub settled_keys: bool,
    /// A status subresource will judge `properties.status` alone.
    pub status: bool,
    /// The schema stays as it was: what a single rule may cost is not judged again.
    pub stays: bool,
}

impl Terms {
    /// Those of a new definition without a status subresource.
    pub const NEW: Self = Self {
        structural: true,
        known_types: true,
        pruned_defaults: true,
        atomic_sets: true,
        settled_keys: true,
        status: false,
        stays: false,
    };
}

/// Judges a schema; the cursor knows where upstream sees it. Structural errors come first; only without them defaults are
/// judged; then each node.
#[must_use]
pub fn validate(schema: &Cursor<'_>, terms: &Terms, metadata: Metadata<'_>) -> Vec<Error> {
    let Some(value) = schema.value() else { return Vec::new() };
    let path = schema.path();
    let (at, props, mut errors) = (At::root(path.as_str()), Props::of(value), Errors::default());
    limits::validate(value, &at, &mut errors);
    if !errors.is_empty() {
        // Nothing looks closer at what is too large.
        return errors.0.into_items();
    }
    root::validate(value, &props, &at, terms.status, &mut errors);
    let judged = errors.len();
    let survey = Survey::of(value);
    let mut sound = terms.structural && survey.refused.is_none();
    if sound {
        let structural = structural(value, &at);
        if structural.is_empty() && survey.defaults {
            defaults::judge(value, &at, terms.pruned_defaults, metadata, &mut errors);
        }
        sound = structural.is_empty() && errors.len() == judged;
        errors.0.extend(structural);
    }
    let before = errors.len();
    nodes::validate(value, &at, terms, &mut errors);
    if sound {
        let found = rules_of(value, &path, &errors.0.items()[before..], terms);
        errors.0.extend(found);
    }
    if let (true, true, Some(why)) = (terms.structural, errors.is_empty(), survey.refused) {
        // Nearly all of it has been said in better words already.
        errors.push_with(|| Error::invalid(&path, "", &why.to_string()));
    }
    errors.0.into_items()
}

/// Whether a schema that was let through before has defaults that hold what it does not know.
#[must_use]
pub fn has_unpruned_defaults(schema: &Cursor<'_>, metadata: Metadata<'_>) -> bool {
    let value = schema.value().filter(|value| Survey::of(value).defaults);
    value.is_some_and(|value| is_structural(schema) && defaults::has_unpruned(value, metadata))
}

/// Whether a schema that was let through before is structural.
#[must_use]
pub fn is_structural(schema: &Cursor<'_>) -> bool {
    violations(schema).is_ok_and(|errors| errors.is_empty())
}

/// What is not structural about a schema that was let through before.
///
/// # Errors
/// Why its structure cannot even be looked for.
pub fn violations(schema: &Cursor<'_>) -> Result<Vec<Error>, CompileError> {
    let Some(value) = schema.value() else { return Ok(Vec::new()) };
    let refused = Survey::of(value).refused;
    refused.map_or_else(|| Ok(structural(value, &At::root(schema.path().as_str()))), Err)
}

/// The structural rules, sorted by text as upstream sorts them.
fn structural(schema: &Value, at: &At<'_>) -> Vec<Error> {
    let mut errors = Errors::default();
    invariants::validate(schema, invariants::Level::Root, at, &mut errors);
    completeness::validate(schema, at, &mut errors);
    let mut errors = errors.0.into_items();
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

/// Errors, up to a bound.
struct Errors(Bounded<Error>);

impl Default for Errors {
    fn default() -> Self {
        Self(Bounded::new(MOST_ERRORS, MAX_ERRORS_BYTES))
    }
}

impl Errors {
    fn push_with(&mut self, error: impl FnOnce() -> Error) {
        self.0.push_with(error);
    }

    fn len(&self) -> usize {
        self.0.items().len()
    }

    fn is_empty(&self) -> bool {
        self.0.items().is_empty()
    }
}
