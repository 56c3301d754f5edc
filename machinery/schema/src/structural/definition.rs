//! Validation of the schema in a definition (`openAPIV3Schema`): upstream's rules, applied to the raw JSON.
//!
//! Errors have upstream's order, paths and messages; the caller passes the location of the schema. The effect of a schema on
//! objects is implemented by the compiled model.

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

/// Validates a schema; the cursor contains its path. Structural errors are checked first, defaults only if there are none,
/// then each node. Validation ends with an error when `interrupted` returns true.
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
        // Schemas that exceed limits are not validated further.
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
        // Most causes have already been reported with a better message.
        errors.push_with(|| Error::invalid(&path, "", &why.to_string()));
    }
    errors.0.into_items()
}

/// True if an accepted schema has defaults with fields that the schema does not specify.
#[must_use]
pub fn has_unpruned_defaults(schema: &Cursor<'_>, metadata: Metadata<'_>) -> bool {
    let value = schema.value().filter(|value| Survey::of(value).defaults);
    value.is_some_and(|value| is_structural(schema) && defaults::has_unpruned(value, metadata))
}

/// True if an accepted schema is structural.
#[must_use]
pub fn is_structural(schema: &Cursor<'_>) -> bool {
    violations(schema).is_ok_and(|errors| errors.is_empty())
}

/// Returns the violations of the structural rules in an accepted schema.
///
/// # Errors
/// [`CompileError`] if the schema has no structural form at all.
pub fn violations(schema: &Cursor<'_>) -> Result<Vec<Error>, CompileError> {
    let Some(value) = schema.value() else { return Ok(Vec::new()) };
    let refused = Survey::of(value).refused;
    refused.map_or_else(|| Ok(structural(value, &At::root(schema.path().as_str()))), Err)
}

/// Checks the structural rules. Errors are sorted by text, as in upstream.
fn structural(schema: &Value, at: &At<'_>) -> Vec<Error> {
    let mut errors = Errors::default();
    invariants::validate(schema, invariants::Level::Root, at, &mut errors);
    completeness::validate(schema, at, &mut errors);
    let mut errors = errors.0.into_items();
    errors.sort_by_cached_key(ToString::to_string);
    errors
}
