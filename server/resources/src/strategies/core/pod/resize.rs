//! The subresource `resize`: other amounts of cpu and memory for a running pod.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};

use portico_validation::Errors;
use portico_validation::pod_spec::quality;
use portico_validation::pod_spec::{MIRROR, is_sidecar};

/// Only resources and their policies are taken.
pub(super) fn prepare(new: &mut Object, old: &Object) {
    let mut kept = old.clone();
    for list in ["containers", "initContainers"] {
        let same_shape = new.at(&["spec", list]).len() == old.at(&["spec", list]).len();
        if !same_shape {
            // Validated later: containers may not come and go.
            kept.copy_from(new, &["spec", list]);
            continue;
        }
        let wanted: Vec<Object> = new
            .at(&["spec", list])
            .items()
            .filter_map(|container| Object::from_node(container.node()?).ok())
            .collect();
        let mut wanted = wanted.iter();
        kept.edit_each(&["spec", list], |container| {
            if let Some(wanted) = wanted.next() {
                for field in ["name", "resources", "resizePolicy"] {
                    container.copy_from(wanted, &[field]);
                }
            }
        });
    }
    kept.copy_from(new, &["spec", "resources"]);
    kept.copy_from(new, &["metadata", "resourceVersion"]);
    *new = kept;
}

/// Validates a resize.
pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    let (new_spec, old_spec) = (new.at(&["spec"]), old.at(&["spec"]));
    if old.annotation(MIRROR).is_some() {
        errors.push(Error::forbidden(&"[]".into(), "static pods cannot be resized"));
        return;
    }
    if old.str_at("spec.os.name") == "windows" {
        errors.push(Error::forbidden(&"[]".into(), "windows pods cannot be resized"));
        return;
    }
    if lacks_support(old) {
        errors.push(new_spec.forbidden("Pod running on node without support for resize"));
    }
    if quality::class(&new_spec) != quality::class(&old_spec) {
        // The class in the status, which is the one that must stay.
        let printed = format!("{:?}", new.str_at("status.qosClass"));
        let text = "Pod QOS Class may not change as a result of resizing";
        errors.push(Error::invalid_printed(&new_spec.path(), &printed, text));
    }
    let mut others_changed = pod_level(&new_spec, &old_spec, errors);
    for list in ["containers", "initContainers"] {
        let (now, then) = (new_spec.field(list), old_spec.field(list));
        if now.len() != then.len() {
            errors.push(now.forbidden(&format!("{list} may not be added or removed on resize")));
            return;
        }
        for (now, then) in now.items().zip(then.items()) {
            others_changed |= container(&now, &then, list, errors);
        }
    }
    if others_changed {
        errors.push(new_spec.forbidden("only cpu and memory resources are mutable"));
    }
}

/// A running container whose status does not have its resources is on a node that cannot resize.
fn lacks_support(pod: &Object) -> bool {
    pod.at(&["status", "containerStatuses"])
        .items()
        .find(|status| status.field("state").field("running").is_present())
        .is_some_and(|status| !status.field("resources").is_present())
}

/// Whether anything else than cpu and memory changed.
fn container(now: &Cursor<'_>, then: &Cursor<'_>, list: &str, errors: &mut Errors) -> bool {
    if now.field("name").str() != then.field("name").str() {
        let text = format!("{list} may not be renamed or reordered on resize");
        errors.push(now.field("name").forbidden(&text));
        return false;
    }
    let (new, old) = (now.field("resources"), then.field("resources"));
    for (field, text) in
        [("requests", "resource requests cannot be removed"), ("limits", "resource limits cannot be removed")]
    {
        if removed(&new.field(field), &old.field(field)) {
            errors.push(new.field(field).forbidden(text));
        }
    }
    let restarts =
        now.field("resizePolicy").items().any(|p| p.field("restartPolicy").str() == "RestartContainer");
    if list == "initContainers" && !is_sidecar(now) && restarts {
        let text = "must not be set to 'RestartContainer' for non-sidecar initContainers";
        errors.push(now.field("resizePolicy").forbidden(text));
    }
    let others = other_resources(&new, &old)
        || !now.field("resizePolicy").same_as(&then.field("resizePolicy"))
        || !new.field("claims").is_empty();
    if others && list == "initContainers" {
        let text = "only cpu and memory resources for init or sidecar containers are mutable";
        errors.push(Error::forbidden(&"spec".into(), text));
        return false;
    }
    others
}

fn removed(new: &Cursor<'_>, old: &Cursor<'_>) -> bool {
    ["cpu", "memory"].iter().any(|name| old.entry_str(name).is_some() && new.entry_str(name).is_none())
}

fn other_resources(new: &Cursor<'_>, old: &Cursor<'_>) -> bool {
    ["limits", "requests"].iter().any(|field| {
        let (now, then) = (new.field(field), old.field(field));
        let differs = |a: &Cursor<'_>, b: &Cursor<'_>| {
            a.entries().any(|(name, value)| {
                !matches!(name, "cpu" | "memory") && b.entry_str(name) != Some(value.str())
            })
        };
        differs(&now, &then) || differs(&then, &now)
    })
}

fn pod_level(new: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) -> bool {
    let (now, then) = (new.field("resources"), old.field("resources"));
    if !then.is_present() {
        return false;
    }
    if !now.is_present() {
        errors.push(now.forbidden("pod-level resources cannot be removed"));
        return false;
    }
    for (field, text) in [
        ("requests", "pod-level resource requests cannot be removed"),
        ("limits", "pod-level resource limits cannot be removed"),
    ] {
        if removed(&now.field(field), &then.field(field)) {
            errors.push(now.field(field).forbidden(text));
        }
    }
    if other_resources(&now, &then) {
        errors.push(now.forbidden("only cpu and memory resources are mutable at pod-level"));
    }
    false
}
