//! What of a job's spec may change, and when its template may.

use portico_machinery::{Cursor, Object};

use portico_validation::Errors;
use portico_validation::checks::{unchanged, unchanged_or_null};

pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    let (spec, before) = (new.at(&["spec"]), old.at(&["spec"]));
    completions(&spec, &before, errors);
    unchanged(&spec.field("selector"), &before.field("selector"), errors);
    template(new, old, errors);
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        unchanged_or_null(&spec.field(field), &before.field(field), errors);
    }
}

fn completions(spec: &Cursor<'_>, before: &Cursor<'_>, errors: &mut Errors) {
    let (new, old) = (spec.field("completions"), before.field("completions"));
    if spec.field("completionMode").str() != "Indexed" {
        return unchanged(&new, &old, errors);
    }
    if new.is_present() && !new.same_as(&old) && new.i64() != spec.field("parallelism").i64() {
        errors.push(new.invalid("can only be modified in tandem with spec.parallelism"));
    }
}

/// A template is fixed unless the job is suspended and none of its pods runs. Even then only metadata, scheduling and
/// resources may change.
fn template(new: &Object, old: &Object, errors: &mut Errors) {
    const TEMPLATE: [&str; 2] = ["spec", "template"];
    if !is_idle(old) {
        return unchanged(&new.at(&TEMPLATE), &old.at(&TEMPLATE), errors);
    }
    const POD: [&str; 3] = ["spec", "template", "spec"];
    let fixed = |object: &Object| {
        let mut rest = Object::default();
        rest.copy_from(object, &POD);
        rest.edit(&POD, strip_mutable);
        rest
    };
    let (kept, had) = (fixed(new), fixed(old));
    if !kept.at(&POD).same_as(&had.at(&POD)) || !same_containers(new, old) {
        errors.push(new.at(&POD).invalid(portico_validation::checks::IMMUTABLE));
    }
}

fn is_idle(old: &Object) -> bool {
    let status = old.at(&["status"]);
    old.at(&["spec", "suspend"]).bool()
        && status.field("active").i64().unwrap_or(0) == 0
        && (!status.field("startTime").is_present() || super::status::holds(old, "Suspended"))
}

fn strip_mutable(pod: &mut Object) {
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        pod.remove(&[field]);
    }
    pod.remove(&["affinity", "nodeAffinity"]);
    if pod.at(&["affinity"]).is_empty() {
        pod.remove(&["affinity"]);
    }
    for list in ["containers", "initContainers"] {
        pod.edit_each(&[list], |container| {
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
