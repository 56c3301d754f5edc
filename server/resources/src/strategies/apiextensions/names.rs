//! The names of a resource, wanted or accepted (`ValidateCustomResourceDefinitionNames` upstream).

use portico_machinery::{Cursor, names};

use portico_validation::Errors;

/// The names that a definition cannot do without.
const REQUIRED: [&str; 4] = ["plural", "singular", "kind", "listKind"];

/// What the spec must name.
pub(super) fn required(names: &Cursor<'_>, errors: &mut Errors) {
    for name in REQUIRED {
        let at = names.field(name);
        if at.str().is_empty() {
            errors.push(at.required(""));
        }
    }
}

/// What names look like, where there are any.
pub(super) fn validate(names: &Cursor<'_>, errors: &mut Errors) {
    for name in ["plural", "singular"] {
        let at = names.field(name);
        if !at.str().is_empty() {
            label(&at, errors);
        }
    }
    let (kind, list_kind) = (names.field("kind"), names.field("listKind"));
    mixed_case(&kind, errors);
    mixed_case(&list_kind, errors);
    names.field("shortNames").items().for_each(|at| label(&at, errors));
    if !kind.str().is_empty() && kind.str() == list_kind.str() {
        errors.push(list_kind.invalid("kind and listKind may not be the same"));
    }
    names.field("categories").items().for_each(|at| label(&at, errors));
}

/// A DNS label; everything that is wrong with it is one diagnostic.
pub(super) fn label(at: &Cursor<'_>, errors: &mut Errors) {
    let diagnostics = names::dns1035_label(at.str());
    if !diagnostics.is_empty() {
        errors.push(at.invalid_text(&diagnostics.join(",")));
    }
}

fn mixed_case(at: &Cursor<'_>, errors: &mut Errors) {
    let diagnostics = names::dns1035_label(&at.str().to_lowercase());
    if !at.str().is_empty() && !diagnostics.is_empty() {
        let diagnostics = diagnostics.join(",");
        errors.push(at.invalid(&format!("may have mixed case, but should otherwise match: {diagnostics}")));
    }
}
