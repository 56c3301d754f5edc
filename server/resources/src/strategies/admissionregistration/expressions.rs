//! Expressions as far as their text tells: there, not too long. Compiling them against the variables of their place is
//! the expression engine's; this is where its diagnostics join the others.

use portico_machinery::{Cursor, names};

use portico_validation::Errors;
use portico_validation::checks;

const CONDITIONS_MAX: usize = 64;

/// An expression that must be there.
pub(super) fn expression(at: &Cursor<'_>, errors: &mut Errors) {
    if at.str().trim().is_empty() {
        errors.push(at.required("expression is not specified"));
    }
}

/// Conditions that a request must meet before anything else is asked.
pub(super) fn match_conditions(conditions: &Cursor<'_>, errors: &mut Errors) {
    if !checks::at_most(conditions, CONDITIONS_MAX, errors) {
        return;
    }
    let mut seen = std::collections::HashSet::new();
    for condition in conditions.items() {
        let (name, text) = (condition.field("name"), condition.field("expression"));
        if text.str().trim().is_empty() {
            errors.push(text.required(""));
        }
        checks::required(&name, names::qualified_name, errors);
        if !name.str().is_empty() {
            checks::unique(&mut seen, &name, errors);
        }
    }
}
