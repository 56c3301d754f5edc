//! The versions of a definition, one by one and together (`validateCustomResourceDefinitionSpec` upstream).

use std::collections::HashSet;

use portico_machinery::Cursor;
use portico_machinery::field::Error;

use super::layout::{Layout, Part};
use super::ratchet::Demands;
use super::{columns, held, names, scale, schemas, selectable};
use portico_validation::Errors;

/// The longest deprecation warning, in bytes.
const WARNING_MAX: usize = 256;

/// Validates each version.
pub(super) fn each(layout: &Layout<'_>, demands: &Demands<'_>, errors: &mut Errors) {
    for version in &layout.versions {
        names::label(&version.field("name"), errors);
        deprecation(version, errors);
        let schema = layout.own(version, Part::Schema);
        if let Some(schema) = &schema {
            let name = version.field("name");
            schemas::validate(schema, name.str(), layout.has_status(version), demands, errors);
        }
        if let Some(subresources) = layout.own(version, Part::Subresources) {
            scale::validate(&subresources, errors);
        }
        let own_columns = layout.own(version, Part::Columns);
        own_columns.iter().flat_map(Cursor::items).for_each(|column| columns::validate(&column, errors));
        if let Some(fields) = layout.own(version, Part::Selectable) {
            let schema = schema.map(|schema| schema.field("openAPIV3Schema")).filter(Cursor::is_present);
            selectable::of_version(&fields, schema.as_ref(), demands, version, errors);
        }
    }
}

/// Validates them together.
pub(super) fn together(layout: &Layout<'_>, errors: &mut Errors) {
    let versions = layout.spec.field("versions");
    let mut names = HashSet::new();
    if !layout.versions.iter().all(|version| names.insert(version.field("name").str())) {
        errors.push(printed(layout, &versions, "must contain unique version names"));
    }
    if layout.versions.iter().filter(|version| version.field("storage").bool()).count() != 1 {
        errors.push(printed(layout, &versions, "must have exactly one version marked as storage version"));
    }
    if let Some(first) = layout.versions.first().map(|version| version.field("name"))
        && !first.str().is_empty()
    {
        // Upstream keeps the first one's name once more.
        names::label(&layout.spec.field("version").holding(&first), errors);
    }
}

/// What versions are printed as: upstream shows how it holds them.
fn printed(layout: &Layout<'_>, versions: &Cursor<'_>, text: &str) -> Error {
    versions.invalid_as(&held::versions(layout), text)
}

fn deprecation(version: &Cursor<'_>, errors: &mut Errors) {
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

/// Letters, marks, numbers, punctuation, symbols, and the one space.
fn is_printable(c: char) -> bool {
    c == ' '
        || !(c.is_control()
            || c.is_whitespace()
            || c.escape_debug().next() == Some('\\') && !matches!(c, '\\' | '"' | '\''))
}
