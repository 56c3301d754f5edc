//! What a definition's schema (`openAPIV3Schema`) may say: upstream's rules for it, over the raw JSON.
//!
//! Errors come in upstream's order, with its paths and texts; the caller says where the schema stands. Nothing here knows
//! what a schema does to objects: that is the compiled model's business.

mod completeness;
mod defaults;
mod diagnostics;
mod errors;
pub(super) mod field_path;
mod formats;
pub(super) mod internal;
mod invariants;
mod limits;
mod lists;
mod metadata;
mod nested;
mod nodes;
mod pattern;
mod props;
pub(super) mod refused;
mod root;
mod rules;
mod survey;
pub(super) mod terms;
mod traits;
mod visit;

pub use defaults::Metadata;
pub use field_path::{Found, resolve};
pub use formats::unrecognized;
pub use internal::{rule_as_held, schema_as_held};
pub use limits::{
    MAX_BRANCHES, MAX_LIST_MAP_KEYS, MAX_PATTERN_BYTES, MAX_PROPERTY_NAME_BYTES, MAX_REQUIRED, MAX_RULES,
};
pub use terms::Terms;
pub use traits::{Traits, traits};

#[cfg(test)]
mod tests;

use portico_machinery::Cursor;
use portico_machinery::field::Error;
use serde_json::Value;

use self::errors::Errors;
use self::props::Props;
use self::survey::Survey;
use super::at::At;
use super::compile_error::CompileError;
use super::rules::Context;
use super::rules::definition::validate as rules_of;

/// Validates a schema; the cursor knows where upstream sees it. Structural errors come first; only without them defaults are
/// validated; then each node. Once `interrupted` returns true, it ends with an error.
#[must_use]
pub fn validate(
    schema: &Cursor<'_>,
    terms: &Terms,
    metadata: Metadata<'_>,
    interrupted: &dyn Fn() -> bool,
) -> Vec<Error> {
    let Some(value) = schema.value() else { return Vec::new() };
    let context = Context::new(interrupted);
    let path = schema.path();
    let (at, props, mut errors) = (At::root(path.as_str()), Props::of(value), Errors::default());
    limits::validate(value, &at, &mut errors);
    if !errors.is_empty() {
        // Nothing looks closer at what is too large.
        return errors.0.into_items();
    }
    root::validate(value, &props, &at, terms.status, &mut errors);
    let validated = errors.len();
    let survey = Survey::of(value);
    let mut sound = terms.structural && survey.refused.is_none();
    if sound {
        let structural = structural(value, &at);
        if structural.is_empty() && survey.defaults {
            defaults::validate(value, &at, terms.pruned_defaults, (metadata, &context), &mut errors);
        }
        sound = structural.is_empty() && errors.len() == validated;
        errors.0.extend(structural);
    }
    let before = errors.len();
    nodes::validate(value, &at, terms, &mut errors);
    if sound {
        let found = rules_of(value, &path, &errors.0.items()[before..], terms, &context);
        errors.0.extend(found);
    }
    if let (true, true, Some(why)) = (terms.structural, errors.is_empty(), survey.refused) {
        // Nearly all of it has been reported in better words already.
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
