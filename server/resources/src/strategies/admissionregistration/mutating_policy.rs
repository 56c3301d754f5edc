//! MutatingAdmissionPolicy: expressions that change objects.

use portico_machinery::Cursor;
use portico_machinery::field::Error;
use portico_policy::Purpose;

use super::expressions::{self, ExpressionValidator};

use portico_validation::Errors;
use portico_validation::checks;

/// Patch types, the fields of their expressions, and the purpose of the expressions.
const PATCH_TYPES: [(&str, &str, Purpose); 2] = [
    ("ApplyConfiguration", "applyConfiguration", Purpose::Configuration),
    ("JSONPatch", "jsonPatch", Purpose::Patch),
];

/// Validates the fields of the spec that only this kind has.
pub(super) fn validate_spec(spec: &Cursor<'_>, expressions: &ExpressionValidator, errors: &mut Errors) {
    let mutations = spec.field("mutations");
    if mutations.is_empty() {
        errors.push(mutations.required("mutations must contain at least one item"));
    }
    mutations.items().for_each(|at| validate_mutation(&at, expressions, errors));
    let reinvocation = spec.field("reinvocationPolicy");
    match reinvocation.str() {
        "" => errors.push(reinvocation.required("")),
        _ => checks::one_of(&reinvocation, &["IfNeeded", "Never"], errors),
    }
}

fn validate_mutation(mutation: &Cursor<'_>, expressions: &ExpressionValidator, errors: &mut Errors) {
    let kind = mutation.field("patchType");
    if kind.str().is_empty() {
        errors.push(kind.required(""));
        return;
    }
    if !PATCH_TYPES.iter().any(|(patch_type, ..)| *patch_type == kind.str()) {
        errors.push(kind.not_supported(&PATCH_TYPES.map(|(patch_type, ..)| patch_type)));
        return;
    }
    for (patch_type, field, purpose) in PATCH_TYPES {
        let at = mutation.field(field);
        match (patch_type == kind.str(), at.is_present()) {
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
                errors.push(at.required(&format!("must be specified when patchType is {patch_type}")));
            }
            (false, true) => {
                let text = format!("must not be specified when patchType is {}", kind.str());
                errors.push(Error::invalid(&at.path(), format!("{{{field}}}"), &text));
            }
            (false, false) => {}
        }
    }
}
