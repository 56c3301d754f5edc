//! Validation of the versions of a definition (upstream's `validateCustomResourceDefinitionSpec`).

use std::collections::HashSet;

use portico_machinery::Cursor;
use portico_machinery::field::Error;

use super::internal_definition::{InternalDefinition, VersionPart};
use super::ratcheting::DefinitionRules;
use super::{columns, go_versions, names, scale, schemas, selectable};
use portico_validation::Errors;

/// Maximum length of a deprecation warning in bytes.
const WARNING_MAX: usize = 256;

/// Validates each version.
pub(super) fn validate_each(
    layout: &InternalDefinition<'_>,
    demands: &DefinitionRules<'_>,
    errors: &mut Errors,
) {
    for version in &layout.versions {
        names::validate_label(&version.field("name"), errors);
        validate_deprecation(version, errors);
        let schema = layout.version_part(version, VersionPart::Schema);
        if let Some(schema) = &schema {
            let name = version.field("name");
            schemas::validate(schema, name.str(), layout.has_status(version), demands, errors);
        }
        if let Some(subresources) = layout.version_part(version, VersionPart::Subresources) {
            scale::validate(&subresources, errors);
        }
        let own_columns = layout.version_part(version, VersionPart::Columns);
        own_columns.iter().flat_map(Cursor::items).for_each(|column| columns::validate(&column, errors));
        if let Some(fields) = layout.version_part(version, VersionPart::Selectable) {
            let schema = schema.map(|schema| schema.field("openAPIV3Schema")).filter(Cursor::is_present);
            selectable::validate_version(&fields, schema.as_ref(), demands, version, errors);
        }
    }
}

/// Validates the list of versions.
pub(super) fn validate_list(layout: &InternalDefinition<'_>, errors: &mut Errors) {
    let versions = layout.spec.field("versions");
    let mut names = HashSet::new();
    if !layout.versions.iter().all(|version| names.insert(version.field("name").str())) {
        errors.push(invalid_versions(layout, &versions, "must contain unique version names"));
    }
    if layout.versions.iter().filter(|version| version.field("storage").bool()).count() != 1 {
        errors.push(invalid_versions(
            layout,
            &versions,
            "must have exactly one version marked as storage version",
        ));
    }
    if let Some(first) = layout.versions.first().map(|version| version.field("name"))
        && !first.str().is_empty()
    {
        // Upstream's internal type also has the name of the first version in `spec.version`.
        names::validate_label(&layout.spec.field("version").with_value_of(&first), errors);
    }
}

/// Error about `spec.versions` that prints the versions as upstream's internal type.
fn invalid_versions(layout: &InternalDefinition<'_>, versions: &Cursor<'_>, text: &str) -> Error {
    versions.invalid_as(&go_versions::format_versions(layout), text)
}

fn validate_deprecation(version: &Cursor<'_>, errors: &mut Errors) {
    let warning = version.field("deprecationWarning");
    let Some(text) = warning.opt_str() else { return };
    if !version.field("deprecated").bool() {
        errors.push(warning.invalid("can only be set for deprecated versions"));
        return;
    }
    if text.len() > WARNING_MAX {
        errors.push(warning.invalid(&format!("must be <= {WARNING_MAX} characters long")));
    }
    if text.is_empty() {
        errors.push(warning.invalid("must not be an empty string"));
    }
    if let Some((at, _)) = text.char_indices().find(|(_, c)| !is_printable(*c)) {
        let only = "must only contain printable UTF-8 characters";
        errors.push(warning.invalid(&format!("{only}; non-printable character found at index {at}")));
    }
}

/// True for letters, marks, numbers, punctuation, symbols and U+0020.
fn is_printable(c: char) -> bool {
    c == ' '
        || !(c.is_control()
            || c.is_whitespace()
            || c.escape_debug().next() == Some('\\') && !matches!(c, '\\' | '"' | '\''))
}
