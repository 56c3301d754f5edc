//! Validation of resource names, in the spec or in `status.acceptedNames` (upstream's
//! `ValidateCustomResourceDefinitionNames`).

use portico_machinery::{Cursor, names};

use portico_validation::Errors;

/// Required names.
const REQUIRED: [&str; 4] = ["plural", "singular", "kind", "listKind"];

/// Checks that the required names exist.
pub(super) fn validate_required(names: &Cursor<'_>, errors: &mut Errors) {
    for name in REQUIRED {
        let at = names.field(name);
        if at.str().is_empty() {
            errors.push(at.required(""));
        }
    }
}

/// Validates the format of names that exist.
pub(super) fn validate(names: &Cursor<'_>, errors: &mut Errors) {
    for name in ["plural", "singular"] {
        let at = names.field(name);
        if !at.str().is_empty() {
            validate_label(&at, errors);
        }
    }
    let (kind, list_kind) = (names.field("kind"), names.field("listKind"));
    validate_mixed_case(&kind, errors);
    validate_mixed_case(&list_kind, errors);
    names.field("shortNames").items().for_each(|at| validate_label(&at, errors));
    if !kind.str().is_empty() && kind.str() == list_kind.str() {
        errors.push(list_kind.invalid("kind and listKind may not be the same"));
    }
    names.field("categories").items().for_each(|at| validate_label(&at, errors));
}

/// Validates a DNS label. All diagnostics are in one error.
pub(super) fn validate_label(at: &Cursor<'_>, errors: &mut Errors) {
    let diagnostics = names::dns1035_label(at.str());
    if !diagnostics.is_empty() {
        errors.push(at.invalid_text(&diagnostics.join(",")));
    }
}

fn validate_mixed_case(at: &Cursor<'_>, errors: &mut Errors) {
    let diagnostics = names::dns1035_label(&at.str().to_lowercase());
    if !at.str().is_empty() && !diagnostics.is_empty() {
        let diagnostics = diagnostics.join(",");
        errors.push(at.invalid(&format!("may have mixed case, but should otherwise match: {diagnostics}")));
    }
}
