//! MutatingAdmissionPolicy: expressions that change writes.

use portico_machinery::Cursor;
use portico_machinery::field::Error;

use portico_validation::Errors;
use portico_validation::checks;

/// The ways to change something, and the fields that they are written in.
const PATCHES: [(&str, &str); 2] = [("ApplyConfiguration", "applyConfiguration"), ("JSONPatch", "jsonPatch")];

/// Validates what only this kind's spec has.
pub(super) fn spec(spec: &Cursor<'_>, errors: &mut Errors) {
    let mutations = spec.field("mutations");
    if mutations.is_empty() {
        errors.push(mutations.required("mutations must contain at least one item"));
    }
    mutations.items().for_each(|at| mutation(&at, errors));
    let again = spec.field("reinvocationPolicy");
    match again.str() {
        "" => errors.push(again.required("")),
        _ => checks::one_of(&again, &["IfNeeded", "Never"], errors),
    }
}

fn mutation(mutation: &Cursor<'_>, errors: &mut Errors) {
    let kind = mutation.field("patchType");
    if kind.str().is_empty() {
        errors.push(kind.required(""));
        return;
    }
    if !PATCHES.iter().any(|(known, _)| *known == kind.str()) {
        errors.push(kind.not_supported(&PATCHES.map(|(known, _)| known)));
        return;
    }
    for (known, field) in PATCHES {
        let at = mutation.field(field);
        match (known == kind.str(), at.is_present()) {
            (true, true) => {
                let text = at.field("expression");
                if text.str().trim().is_empty() {
                    errors.push(text.required(""));
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
