//! The schemas of a definition: which there must be, what is validated of them, and what they draw warnings for.

use std::collections::HashSet;

use portico_machinery::{Cursor, Object};
use portico_schema::structural::definition::{self, Terms};

use super::layout::Layout;
use super::ratchet::Demands;
use portico_registry::is_abandoned;
use portico_validation::Errors;

/// Every version has one; where an old definition lacked some, only what is served and pruned needs one.
pub(super) fn required(layout: &Layout<'_>, demands: &Demands<'_>, errors: &mut Errors) {
    let prunes = !layout.spec.field("preserveUnknownFields").bool();
    for version in &layout.versions {
        let container = version.field("schema");
        let schema = container.field("openAPIV3Schema");
        match schema.is_present() {
            true => {}
            false if demands.schemas => errors.push(schema.required("")),
            false if prunes && version.field("served").bool() => {
                errors.push(schema.required("because otherwise all fields are pruned"));
            }
            false => {}
        }
    }
}

/// Validates the schema of a version, or of all (named as the first one), where upstream holds it.
pub(super) fn validate(
    schema: &Cursor<'_>,
    version: &str,
    status: bool,
    demands: &Demands<'_>,
    errors: &mut Errors,
) {
    let schema = schema.field("openAPIV3Schema");
    if schema.is_present() {
        let stays = demands.settled_schemas.contains(version);
        errors.extend(definition::validate(
            &schema,
            &Terms { status, stays, ..demands.terms },
            demands.metadata,
            &is_abandoned,
        ));
    }
}

/// A warning for each place with a format that nobody knows; on a change only for formats that were not there before.
pub(super) fn warnings(new: &Object, old: Option<&Object>) -> Vec<String> {
    let layout = Layout::of(new);
    let schemas = layout.schemas();
    let formats: Vec<&str> = schemas.iter().flat_map(definition::unrecognized).collect();
    if formats.is_empty() {
        return Vec::new();
    }
    let before = old.map(Layout::of).map(|layout| layout.schemas()).unwrap_or_default();
    let before: HashSet<&str> = before.iter().flat_map(definition::unrecognized).collect();
    let fresh = formats.into_iter().filter(|format| !before.contains(format));
    fresh.map(|format| format!("unrecognized format {format:?}")).collect()
}
