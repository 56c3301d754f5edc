//! MutatingAdmissionPolicy: expressions that change writes.

use portico_machinery::field::Error;
use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object};

use super::{expressions, permission, policy};
use crate::strategies::{Errors, Strategy, Write};
use crate::validation::checks;

/// The ways to change something, and the fields that they are written in.
const PATCHES: [(&str, &str); 2] = [("ApplyConfiguration", "applyConfiguration"), ("JSONPatch", "jsonPatch")];

/// See the module.
pub(in crate::strategies) struct MutatingPolicy;

impl Strategy for MutatingPolicy {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        let spec = new.at(&["spec"]);
        policy::common(&spec, true, errors);
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

    fn permit(&self, write: &Write<'_>) -> Errors {
        permission::param_kind(write)
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        super::name_warnings(new)
    }

    fn cell(&self, _function: &str, object: &Object) -> Cell {
        policy::param_kind_cell(object)
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
            (true, true) => expressions::expression(&at.field("expression"), errors),
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
