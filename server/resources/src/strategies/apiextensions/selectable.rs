//! Validation of selectable fields (upstream's `ValidateCustomResourceSelectableFields`).

use std::collections::HashSet;

use portico_machinery::Cursor;
use portico_machinery::field::Error;
use portico_schema::structural::definition;

use super::ratcheting::{DefinitionRules, MAX_SELECTABLE};
use portico_validation::Errors;

const TYPES: [&str; 3] = ["string", "boolean", "integer"];

/// Validates the fields of one version. As upstream, the message states the opposite of the rule.
pub(super) fn validate_version(
    fields: &Cursor<'_>,
    schema: Option<&Cursor<'_>>,
    demands: &DefinitionRules<'_>,
    version: &Cursor<'_>,
    errors: &mut Errors,
) {
    let name = version.field("name");
    let without = "may only be set when `version.schema.openAPIV3Schema` is not included";
    validate_fields(fields, schema, without, demands.over_field_limit.contains(name.str()), errors);
}

/// Validates the fields that all versions share.
pub(super) fn validate_shared(
    fields: &Cursor<'_>,
    schema: Option<&Cursor<'_>>,
    demands: &DefinitionRules<'_>,
    errors: &mut Errors,
) {
    let without = "may only be set when validations.schema is included";
    validate_fields(fields, schema, without, demands.over_field_limit.contains(""), errors);
}

fn validate_fields(
    fields: &Cursor<'_>,
    schema: Option<&Cursor<'_>>,
    without: &str,
    crowded: bool,
    errors: &mut Errors,
) {
    let Some(schema) = schema else {
        errors.push(Error::invalid(&fields.path(), "", without));
        return;
    };
    let mut seen = HashSet::new();
    for field in fields.items() {
        validate_field(&field.field("jsonPath"), schema, &mut seen, errors);
    }
    if seen.len() > MAX_SELECTABLE && !crowded {
        errors.push(Error::too_many(&fields.path(), seen.len(), MAX_SELECTABLE));
    }
}

fn validate_field(path: &Cursor<'_>, schema: &Cursor<'_>, seen: &mut HashSet<String>, errors: &mut Errors) {
    if path.str().is_empty() {
        errors.push(path.required(""));
        return;
    }
    let found = match definition::resolve(schema, path.str()) {
        Ok(found) => found,
        Err(error) => return errors.push(path.invalid(&format!("is an invalid path: {error}"))),
    };
    if found.root == "metadata" {
        errors.push(path.invalid("must not point to fields in metadata"));
    }
    if !TYPES.contains(&&*found.ty) {
        errors.push(path.invalid(
            "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
        ));
    }
    if !seen.insert(found.path.as_str().to_owned()) {
        errors.push(path.duplicate());
    }
}
