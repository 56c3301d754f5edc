//! Validation of the schema in a definition (`openAPIV3Schema`): upstream's rules, applied to the raw JSON.
//!
//! Errors have upstream's order, paths and messages; the caller passes the location of the schema. The effect of a schema on
//! objects is implemented by the compiled model.

mod completeness;
mod defaults;
mod diagnostics;
mod errors;
mod facts;
mod features;
pub(super) mod field_path;
mod formats;
pub(super) mod internal_format;
mod invariants;
mod limits;
mod lists;
mod logical_operators;
mod metadata;
mod nodes;
mod pattern;
mod props;
pub(super) mod requirements;
mod root;
mod rules;
pub(super) mod unsupported;
mod visit;

pub use defaults::MetadataRules;
pub use features::{SchemaFeatures, features};
pub use field_path::{ResolvedField, resolve};
pub use formats::unrecognized_formats;
pub use internal_format::{format_rule, format_schema};
pub use limits::{
    MAX_BRANCHES, MAX_LIST_MAP_KEYS, MAX_PATTERN_BYTES, MAX_PROPERTY_NAME_BYTES, MAX_REQUIRED, MAX_RULES,
};
pub use requirements::Requirements;

#[cfg(test)]
mod tests;

use portico_machinery::Cursor;
use portico_machinery::field::Error;
use serde_json::Value;

use self::errors::Errors;
use self::facts::SchemaFacts;
use self::props::Props;
use super::compile_error::CompileError;
use super::location::Location;
use super::rules::EvaluationContext;
use super::rules::definition::validate as rules_of;

/// Validates a schema; the cursor contains its path. Structural errors are checked first, defaults only if there are none,
/// then each node. Validation ends with an error when `interrupted` returns true.
#[must_use]
pub fn validate(
    schema: &Cursor<'_>,
    requirements: &Requirements,
    metadata: MetadataRules<'_>,
    interrupted: &dyn Fn() -> bool,
) -> Vec<Error> {
    let Some(value) = schema.value() else { return Vec::new() };
    let context = EvaluationContext::new(interrupted);
    let path = schema.path();
    let (location, props, mut errors) = (Location::root(path.as_str()), Props::of(value), Errors::default());
    limits::validate(value, &location, &mut errors);
    if !errors.is_empty() {
        // Schemas that exceed limits are not validated further.
        return errors.0.into_items();
    }
    root::validate(value, &props, &location, requirements.has_status, &mut errors);
    let validated = errors.len();
    let survey = SchemaFacts::of(value);
    let mut sound = requirements.structural && survey.unsupported.is_none();
    if sound {
        let structural = structural_errors(value, &location);
        if structural.is_empty() && survey.has_defaults {
            defaults::validate(
                value,
                &location,
                requirements.pruned_defaults,
                (metadata, &context),
                &mut errors,
            );
        }
        sound = structural.is_empty() && errors.len() == validated;
        errors.0.extend(structural);
    }
    let before = errors.len();
    nodes::validate(value, &location, requirements, &mut errors);
    if sound {
        let found = rules_of(value, &path, &errors.0.items()[before..], requirements, &context);
        errors.0.extend(found);
    }
    if let (true, true, Some(reason)) = (requirements.structural, errors.is_empty(), survey.unsupported) {
        // Most causes have already been reported with a better message.
        errors.push_with(|| Error::invalid(&path, "", &reason.to_string()));
    }
    errors.0.into_items()
}

/// True if an accepted schema has defaults with fields that the schema does not specify.
#[must_use]
pub fn has_unpruned_defaults(schema: &Cursor<'_>, metadata: MetadataRules<'_>) -> bool {
    let value = schema.value().filter(|value| SchemaFacts::of(value).has_defaults);
    value.is_some_and(|value| is_structural(schema) && defaults::has_unpruned_default(value, metadata))
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
    let refused = SchemaFacts::of(value).unsupported;
    refused.map_or_else(|| Ok(structural_errors(value, &Location::root(schema.path().as_str()))), Err)
}

/// Checks the structural rules. Errors are sorted by text, as in upstream.
fn structural_errors(schema: &Value, location: &Location<'_>) -> Vec<Error> {
    let mut errors = Errors::default();
    invariants::validate(schema, invariants::Level::Root, location, &mut errors);
    completeness::validate(schema, location, &mut errors);
    let mut errors = errors.0.into_items();
    errors.sort_by_cached_key(ToString::to_string);
    errors
}
