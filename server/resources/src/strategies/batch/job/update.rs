//! Mutable fields of the spec of a job.

use portico_machinery::{Cursor, Object};

use portico_validation::Errors;
use portico_validation::checks::{unchanged, unchanged_or_null};

pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    let (spec, before) = (new.at(&["spec"]), old.at(&["spec"]));
    validate_completions(&spec, &before, errors);
    unchanged(&spec.field("selector"), &before.field("selector"), errors);
    validate_template(new, old, errors);
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        unchanged_or_null(&spec.field(field), &before.field(field), errors);
    }
}

fn validate_completions(spec: &Cursor<'_>, before: &Cursor<'_>, errors: &mut Errors) {
    let (new, old) = (spec.field("completions"), before.field("completions"));
    if spec.field("completionMode").str() != "Indexed" {
        return unchanged(&new, &old, errors);
    }
    if new.is_present() && !new.same_as(&old) && new.i64() != spec.field("parallelism").i64() {
        errors.push(new.invalid("can only be modified in tandem with spec.parallelism"));
    }
}

/// Checks that the template is unchanged, unless the job is suspended and none of its pods runs. In that case, only metadata,
/// scheduling fields and resources may change.
fn validate_template(new: &Object, old: &Object, errors: &mut Errors) {
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
    let (fixed_new, fixed_old) = (fixed(new), fixed(old));
    if !fixed_new.at(&POD).same_as(&fixed_old.at(&POD)) || !has_same_containers(new, old) {
        errors.push(new.at(&POD).invalid(portico_validation::checks::IMMUTABLE));
    }
}

fn is_idle(old: &Object) -> bool {
    let status = old.at(&["status"]);
    old.at(&["spec", "suspend"]).bool()
        && status.field("active").i64().unwrap_or(0) == 0
        && (!status.field("startTime").is_present() || super::status::is_condition_true(old, "Suspended"))
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

/// True if the containers have the same names in the same order. Resources may change only in this case.
fn has_same_containers(new: &Object, old: &Object) -> bool {
    ["containers", "initContainers"].iter().all(|list| {
        let path = ["spec", "template", "spec", *list];
        let names = |object: &Object| -> Vec<String> {
            object.at(&path).items().map(|c| c.field("name").str().to_owned()).collect()
        };
        names(new) == names(old)
    })
}
