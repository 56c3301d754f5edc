//! The subresource `resize`: other amounts of cpu and memory for a running pod.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};

use super::metadata;
use portico_validation::pod_spec::{MIRROR, is_sidecar, quality};
use portico_validation::{Errors, checks};

const LISTS: [&str; 2] = ["initContainers", "containers"];
const ONLY_CPU_AND_MEMORY: &str = "only cpu and memory resources are mutable";

/// Takes only resources and their policies.
pub(super) fn prepare(new: &mut Object, old: &Object) {
    let count = |object: &Object, list| object.at(&["spec", list]).len();
    if LISTS.iter().any(|list| count(new, list) != count(old, list)) {
        // Validation reports that containers may not be added or removed.
        return;
    }
    let mut kept = old.clone();
    for list in LISTS {
        if names(new, list) != names(old, list) {
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
                for field in ["resources", "resizePolicy"] {
                    container.copy_from(wanted, &[field]);
                }
            }
        });
    }
    kept.copy_from(new, &["spec", "resources"]);
    metadata::keep(&mut kept, new, old);
    *new = kept;
}

fn names<'a>(pod: &'a Object, list: &'a str) -> Vec<&'a str> {
    pod.at(&["spec", list]).items().map(|container| container.field("name").str()).collect()
}

/// The reason why a pod cannot be resized at all, which replaces everything else that is wrong.
pub(super) fn refusal(old: &Object) -> Option<Error> {
    let text = match old.annotation(MIRROR) {
        Some(_) => "static pods cannot be resized",
        None if old.str_at("spec.os.name") == "windows" => "windows pods cannot be resized",
        None => return None,
    };
    Some(Error::forbidden(&"[]".into(), text))
}

/// Validates a resize; `errors` are those of the pod itself.
pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    let (new_spec, old_spec) = (new.at(&["spec"]), old.at(&["spec"]));
    if quality::class(&new_spec) != quality::class(&old_spec) {
        // The class in the status, which is the one that must stay.
        let printed = format!("{:?}", new.str_at("status.qosClass"));
        let text = "Pod QOS Class may not change as a result of resizing";
        errors.push(Error::invalid_printed(&new_spec.path(), &printed, text));
    }
    if lacks_support(old) {
        errors.push(new_spec.forbidden("Pod running on node without support for resize"));
    }
    pod_level(&new_spec, &old_spec, errors);
    if !same_order(&new_spec, &old_spec, errors) {
        return;
    }
    for list in LISTS {
        let (now, then) = (new_spec.field(list), old_spec.field(list));
        for (now, then) in now.items().zip(then.items()) {
            match list {
                "containers" => container(&now, &then, &new_spec, errors),
                _ => init_container(&now, &then, errors),
            }
        }
    }
    let (now, then) = (new_spec.field("resources"), old_spec.field("resources"));
    if errors.is_empty() && !is_set(&now) && !is_set(&then) && !now.same_as(&then) {
        errors.push(new_spec.forbidden(ONLY_CPU_AND_MEMORY));
    }
}

/// A running container whose status does not have its resources is on a node that cannot resize.
fn lacks_support(pod: &Object) -> bool {
    pod.at(&["status", "containerStatuses"])
        .items()
        .find(|status| status.field("state").field("running").is_present())
        .is_some_and(|status| !status.field("resources").is_present())
}

/// Reports containers that come, go, move or have another name. Returns true if there are none.
fn same_order(new: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) -> bool {
    let before = errors.len();
    for list in LISTS {
        let (now, then) = (new.field(list), old.field(list));
        if now.len() != then.len() {
            errors.push(now.forbidden(&format!("{list} may not be added or removed on resize")));
            continue;
        }
        for (now, then) in now.items().zip(then.items()) {
            if now.field("name").str() != then.field("name").str() {
                let text = format!("{list} may not be renamed or reordered on resize");
                errors.push(now.field("name").forbidden(&text));
            }
        }
    }
    errors.len() == before
}

fn container(now: &Cursor<'_>, then: &Cursor<'_>, spec: &Cursor<'_>, errors: &mut Errors) {
    removals(now, then, "resource", errors);
    if changes_others(now, then) {
        errors.push(spec.forbidden(ONLY_CPU_AND_MEMORY));
    }
}

fn init_container(now: &Cursor<'_>, then: &Cursor<'_>, errors: &mut Errors) {
    removals(now, then, "resource", errors);
    if changes_others(now, then) {
        errors
            .push(now.forbidden("only cpu and memory resources for init or sidecar containers are mutable"));
    }
    let restarts =
        now.field("resizePolicy").items().filter(|p| p.field("restartPolicy").str() == "RestartContainer");
    if !is_sidecar(now) && !now.same_as(then) {
        let text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
        restarts.for_each(|_| errors.push(now.forbidden(text)));
    }
}

/// Reports amounts that were there and are no longer.
fn removals(now: &Cursor<'_>, then: &Cursor<'_>, of: &str, errors: &mut Errors) {
    let (new, old) = (now.field("resources"), then.field("resources"));
    for field in ["requests", "limits"] {
        let (now, then) = (new.field(field), old.field(field));
        if then.entries().any(|(name, _)| now.entry_str(name).is_none()) {
            errors.push(now.forbidden(&format!("{of} {field} cannot be removed")));
        }
    }
}

/// True if anything but amounts of cpu and memory changed. A container that has claims always counts as changed: the
/// comparison takes them away from the new one.
fn changes_others(now: &Cursor<'_>, then: &Cursor<'_>) -> bool {
    let (new, old) = (now.field("resources"), then.field("resources"));
    other_amounts(&new, &old)
        || !now.field("resizePolicy").same_as(&then.field("resizePolicy"))
        || !old.field("claims").is_empty()
}

fn other_amounts(new: &Cursor<'_>, old: &Cursor<'_>) -> bool {
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

fn is_set(resources: &Cursor<'_>) -> bool {
    ["requests", "limits"].iter().any(|field| !resources.field(field).is_empty())
}

fn pod_level(new: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (now, then) = (new.field("resources"), old.field("resources"));
    if !is_set(&now) && !is_set(&then) {
        return;
    }
    if then.is_present() && !now.is_present() {
        errors.push(now.forbidden("pod-level resources cannot be removed"));
        return;
    }
    removals(new, old, "pod-level resource", errors);
    if other_amounts(&now, &then) || !checks::same(&now.field("claims"), &then.field("claims")) {
        errors.push(new.forbidden("only cpu and memory resources are mutable at pod-level"));
    }
}
