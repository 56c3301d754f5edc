//! flowcontrol.apiserver.k8s.io: FlowSchema, PriorityLevelConfiguration, and the built-in objects of both kinds.

mod builtin;
mod flow_schema;
mod priority_level;

pub use builtin::{BuiltinFlowObject, builtin_flow_objects};
pub(crate) use flow_schema::FlowSchema;
pub(crate) use priority_level::PriorityLevel;

use std::collections::HashSet;

use portico_machinery::{Cursor, Object};

use portico_validation::Errors;
use portico_validation::checks;

/// Validates the status of both kinds.
fn validate_status(object: &Object, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for condition in object.at(&["status", "conditions"]).items() {
        let kind = condition.field("type");
        if kind.str().is_empty() {
            errors.push(kind.required(""));
        }
        checks::unique(&mut seen, &kind, errors);
    }
}

/// Checks that the spec of a mandatory built-in object is unchanged, except for `part`.
fn validate_mandatory(object: &Object, kind: &str, text: &str, part: &[&str], errors: &mut Errors) {
    let builtin = builtin_flow_objects().iter().find(|b| b.mandatory && b.has_name(kind, object.name()));
    let Some(builtin) = builtin else { return };
    let strip = |object: &Object| {
        let mut spec = object.clone();
        if !part.is_empty() {
            spec.remove(part);
        }
        spec
    };
    let (new_value, old_value) = (strip(object), strip(&builtin.object));
    if !new_value.at(&["spec"]).same_as(&old_value.at(&["spec"])) {
        let spec: Cursor<'_> = object.at(&["spec"]);
        errors.push(spec.invalid(text));
    }
}
