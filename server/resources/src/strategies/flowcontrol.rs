//! flowcontrol.apiserver.k8s.io: which requests share which seats, and the objects of it that are always there.

mod builtin;
mod flow_schema;
mod priority_level;

pub use builtin::{FlowObject, flow_objects};
pub(crate) use flow_schema::FlowSchema;
pub(crate) use priority_level::PriorityLevel;

use std::collections::HashSet;

use portico_machinery::{Cursor, Object};

use portico_validation::Errors;
use portico_validation::checks;

/// The status that both kinds have.
fn status(object: &Object, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for condition in object.at(&["status", "conditions"]).items() {
        let kind = condition.field("type");
        if kind.str().is_empty() {
            errors.push(kind.required(""));
        }
        checks::unique(&mut seen, &kind, errors);
    }
}

/// The spec of a built-in object of this name must stay as it is, but for `part`.
fn fixed(object: &Object, kind: &str, text: &str, part: &[&str], errors: &mut Errors) {
    let builtin = flow_objects().iter().find(|b| b.mandatory && b.is(kind, object.name()));
    let Some(builtin) = builtin else { return };
    let strip = |object: &Object| {
        let mut spec = object.clone();
        if !part.is_empty() {
            spec.remove(part);
        }
        spec
    };
    let (now, then) = (strip(object), strip(&builtin.object));
    if !now.at(&["spec"]).same_as(&then.at(&["spec"])) {
        let spec: Cursor<'_> = object.at(&["spec"]);
        errors.push(spec.invalid(text));
    }
}
