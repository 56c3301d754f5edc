//! MutatingAdmissionPolicy: expressions that change writes.

use portico_machinery::Cursor;
use portico_machinery::field::Error;
use portico_policy::Purpose;

use super::expressions::{self, Expressions};

use portico_validation::Errors;
use portico_validation::checks;

/// The ways to change something, the fields that they are written in, and what their expressions are for.
const PATCHES: [(&str, &str, Purpose); 2] = [
    ("ApplyConfiguration", "applyConfiguration", Purpose::Configuration),
    ("JSONPatch", "jsonPatch", Purpose::Patch),
];

/// Validates what only this kind's spec has.
pub(super) fn spec(spec: &Cursor<'_>, expressions: &Expressions, errors: &mut Errors) {
    let mutations = spec.field("mutations");
    if mutations.is_empty() {
        errors.push(mutations.required("mutations must contain at least one item"));
    }
    mutations.items().for_each(|at| mutation(&at, expressions, errors));
    let again = spec.field("reinvocationPolicy");
    match again.str() {
        "" => errors.push(again.required("")),
        _ => checks::one_of(&again, &["IfNeeded", "Never"], errors),
    }
}

fn mutation(mutation: &Cursor<'_>, expressions: &Expressions, errors: &mut Errors) {
    let kind = mutation.field("patchType");
    if kind.str().is_empty() {
        errors.push(kind.required(""));
        return;
    }
    if !PATCHES.iter().any(|(known, ..)| *known == kind.str()) {
        errors.push(kind.not_supported(&PATCHES.map(|(known, ..)| known)));
        return;
    }
    for (known, field, purpose) in PATCHES {
        let at = mutation.field(field);
        match (known == kind.str(), at.is_present()) {
            (true, true) => {
                let text = at.field("expression");
                match text.str().trim() {
                    "" => errors.push(text.required("")),
                    trimmed => {
                        expressions::compile(&expressions.compiler, purpose, &text, trimmed, errors);
                    }
                }
            }
            (true, false) => {
                errors.push(at.required(&format!("must be specified when patchType is {known}")));
            }
            (false, true) => {
                let text = format!("must not be specified when patchType is {}", kind.str());
                errors.push(Error::invalid(&at.path(), format!("{{{field}}}"), &text));
            }
            (false, false) => {}
        }
    }
}
