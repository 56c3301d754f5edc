//! What of a job's spec may change, and when its template may.

use portico_machinery::{Cursor, Object};

use portico_validation::Errors;
use portico_validation::checks::unchanged;

pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    let (spec, before) = (new.at(&["spec"]), old.at(&["spec"]));
    completions(&spec, &before, errors);
    unchanged(&spec.field("selector"), &before.field("selector"), errors);
    template(new, old, errors);
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        unchanged(&spec.field(field), &before.field(field), errors);
    }
}

fn completions(spec: &Cursor<'_>, before: &Cursor<'_>, errors: &mut Errors) {
    let (new, old) = (spec.field("completions"), before.field("completions"));
    if spec.field("completionMode").str() != "Indexed" {
        return unchanged(&new, &old, errors);
    }
    if !new.same_as(&old) && new.i64() != spec.field("parallelism").i64() {
        errors.push(new.invalid("can only be modified in tandem with spec.parallelism"));
    }
}

/// A template is fixed unless the job is suspended and nothing of it runs; even then only where its pods may go, what
/// they may use and what they are called may change.
fn template(new: &Object, old: &Object, errors: &mut Errors) {
    const TEMPLATE: [&str; 2] = ["spec", "template"];
    if !is_idle(old) {
        return unchanged(&new.at(&TEMPLATE), &old.at(&TEMPLATE), errors);
    }
    let fixed = |object: &Object| {
        let mut rest = Object::default();
        rest.copy_from(object, &TEMPLATE);
        rest.edit(&TEMPLATE, strip_mutable);
        rest
    };
    let (kept, had) = (fixed(new), fixed(old));
    if !kept.at(&TEMPLATE).same_as(&had.at(&TEMPLATE)) || !same_containers(new, old) {
        let spec = new.at(&["spec", "template", "spec"]);
        errors.push(spec.invalid(portico_validation::checks::IMMUTABLE));
    }
}

fn is_idle(old: &Object) -> bool {
    let status = old.at(&["status"]);
    old.at(&["spec", "suspend"]).bool()
        && status.field("active").i64().unwrap_or(0) == 0
        && (!status.field("startTime").is_present() || super::status::holds(old, "Suspended"))
}

fn strip_mutable(template: &mut Object) {
    for path in [["metadata", "labels"], ["metadata", "annotations"]] {
        template.remove(&path);
    }
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        template.remove(&["spec", field]);
    }
    template.remove(&["spec", "affinity", "nodeAffinity"]);
    if template.at(&["spec", "affinity"]).is_empty() {
        template.remove(&["spec", "affinity"]);
    }
    for list in ["containers", "initContainers"] {
        template.edit_each(&["spec", list], |container| {
            container.remove(&["resources"]);
        });
    }
}

/// Resources may only change for the same containers in the same order.
fn same_containers(new: &Object, old: &Object) -> bool {
    ["containers", "initContainers"].iter().all(|list| {
        let path = ["spec", "template", "spec", *list];
        let names = |object: &Object| -> Vec<String> {
            object.at(&path).items().map(|c| c.field("name").str().to_owned()).collect()
        };
        names(new) == names(old)
    })
}
