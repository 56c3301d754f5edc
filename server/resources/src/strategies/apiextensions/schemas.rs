//! Schemas of a definition: presence, validation, and warnings.

use std::collections::HashSet;

use portico_machinery::{Cursor, Object};
use portico_schema::structural::definition::{self, Requirements};

use super::internal_definition::InternalDefinition;
use super::ratcheting::DefinitionRules;
use portico_registry::is_abandoned;
use portico_validation::Errors;

/// Checks that every version has a schema. If the old definition lacked schemas, only versions that are served and pruned need
/// one.
pub(super) fn validate_required(
    layout: &InternalDefinition<'_>,
    demands: &DefinitionRules<'_>,
    errors: &mut Errors,
) {
    let prunes = !layout.spec.field("preserveUnknownFields").bool();
    for version in &layout.versions {
        let container = version.field("schema");
        let schema = container.field("openAPIV3Schema");
        match schema.is_present() {
            true => {}
            false if demands.require_schemas => errors.push(schema.required("")),
            false if prunes && version.field("served").bool() => {
                errors.push(schema.required("because otherwise all fields are pruned"));
            }
            false => {}
        }
    }
}

/// Validates the schema of a version, or the schema of all versions, in which case `version` is the first one.
pub(super) fn validate(
    schema: &Cursor<'_>,
    version: &str,
    has_status: bool,
    demands: &DefinitionRules<'_>,
    errors: &mut Errors,
) {
    let schema = schema.field("openAPIV3Schema");
    if schema.is_present() {
        let is_unchanged = demands.unchanged_schemas.contains(version);
        errors.extend(definition::validate(
            &schema,
            &Requirements { has_status, is_unchanged, ..demands.schema_requirements },
            demands.metadata,
            &is_abandoned,
        ));
    }
}

/// Returns a warning for each use of an unknown format. Updates warn only about formats that the old definition did not have.
pub(super) fn warnings(new: &Object, old: Option<&Object>) -> Vec<String> {
    let layout = InternalDefinition::of(new);
    let schemas = layout.schemas();
    let formats: Vec<&str> = schemas.iter().flat_map(definition::unrecognized_formats).collect();
    if formats.is_empty() {
        return Vec::new();
    }
    let before = old.map(InternalDefinition::of).map(|layout| layout.schemas()).unwrap_or_default();
    let before: HashSet<&str> = before.iter().flat_map(definition::unrecognized_formats).collect();
    let fresh = formats.into_iter().filter(|format| !before.contains(format));
    fresh.map(|format| format!("unrecognized format {format:?}")).collect()
}
