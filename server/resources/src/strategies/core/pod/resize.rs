//! Subresource `resize`: changes cpu and memory of a running pod.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};

use super::metadata;
use portico_validation::pod_spec::{MIRROR, is_sidecar, qos};
use portico_validation::{Errors, checks};

const LISTS: [&str; 2] = ["initContainers", "containers"];
const ONLY_CPU_AND_MEMORY: &str = "only cpu and memory resources are mutable";

/// Restores the old state of all fields except resources and resize policies.
pub(super) fn prepare(new: &mut Object, old: &Object) {
    let count = |object: &Object, list| object.at(&["spec", list]).len();
    if LISTS.iter().any(|list| count(new, list) != count(old, list)) {
        // Validation reports that containers cannot be added or removed.
        return;
    }
    let mut updated = old.clone();
    for list in LISTS {
        if names(new, list) != names(old, list) {
            updated.copy_from(new, &["spec", list]);
            continue;
        }
        let resources: Vec<Object> = new
            .at(&["spec", list])
            .items()
            .filter_map(|container| Object::from_node(container.node()?).ok())
            .collect();
        let mut resources = resources.iter();
        updated.edit_each(&["spec", list], |container| {
            if let Some(new_resources) = resources.next() {
                for field in ["resources", "resizePolicy"] {
                    container.copy_from(new_resources, &[field]);
                }
            }
        });
    }
    updated.copy_from(new, &["spec", "resources"]);
    metadata::copy_mutable(&mut updated, new, old);
    *new = updated;
}

fn names<'a>(pod: &'a Object, list: &'a str) -> Vec<&'a str> {
    pod.at(&["spec", list]).items().map(|container| container.field("name").str()).collect()
}

/// Returns the error if the pod cannot be resized at all. It replaces all other errors.
pub(super) fn refusal(old: &Object) -> Option<Error> {
    let text = match old.annotation(MIRROR) {
        Some(_) => "static pods cannot be resized",
        None if old.str_at("spec.os.name") == "windows" => "windows pods cannot be resized",
        None => return None,
    };
    Some(Error::forbidden(&"[]".into(), text))
}

/// Validates a resize. `errors` already contains the errors of the pod itself.
pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    let (new_spec, old_spec) = (new.at(&["spec"]), old.at(&["spec"]));
    if qos::qos_class(&new_spec) != qos::qos_class(&old_spec) {
        // The QoS class in the status, which must not change.
        let printed = format!("{:?}", new.str_at("status.qosClass"));
        let text = "Pod QOS Class may not change as a result of resizing";
        errors.push(Error::invalid_printed(&new_spec.path(), &printed, text));
    }
    if lacks_support(old) {
        errors.push(new_spec.forbidden("Pod running on node without support for resize"));
    }
    validate_pod_level(&new_spec, &old_spec, errors);
    if !check_same_order(&new_spec, &old_spec, errors) {
        return;
    }
    for list in LISTS {
        let (new_value, old_value) = (new_spec.field(list), old_spec.field(list));
        for (new_container, old_container) in new_value.items().zip(old_value.items()) {
            match list {
                "containers" => validate_container(&new_container, &old_container, &new_spec, errors),
                _ => validate_init_container(&new_container, &old_container, errors),
            }
        }
    }
    let (new_value, old_value) = (new_spec.field("resources"), old_spec.field("resources"));
    if errors.is_empty() && !is_set(&new_value) && !is_set(&old_value) && !new_value.same_as(&old_value) {
        errors.push(new_spec.forbidden(ONLY_CPU_AND_MEMORY));
    }
}

/// True if a running container has no resources in its status, because its node does not support resizes.
fn lacks_support(pod: &Object) -> bool {
    pod.at(&["status", "containerStatuses"])
        .items()
        .find(|status| status.field("state").field("running").is_present())
        .is_some_and(|status| !status.field("resources").is_present())
}

/// Reports containers that are added, removed, moved or renamed. Returns `true` if there are none.
fn check_same_order(new: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) -> bool {
    let before = errors.len();
    for list in LISTS {
        let (new_value, old_value) = (new.field(list), old.field(list));
        if new_value.len() != old_value.len() {
            errors.push(new_value.forbidden(&format!("{list} may not be added or removed on resize")));
            continue;
        }
        for (new_container, old_container) in new_value.items().zip(old_value.items()) {
            if new_container.field("name").str() != old_container.field("name").str() {
                let text = format!("{list} may not be renamed or reordered on resize");
                errors.push(new_container.field("name").forbidden(&text));
            }
        }
    }
    errors.len() == before
}

fn validate_container(
    new_container: &Cursor<'_>,
    old_container: &Cursor<'_>,
    spec: &Cursor<'_>,
    errors: &mut Errors,
) {
    check_removals(new_container, old_container, "resource", errors);
    if changes_other_resources(new_container, old_container) {
        errors.push(spec.forbidden(ONLY_CPU_AND_MEMORY));
    }
}

fn validate_init_container(new_container: &Cursor<'_>, old_container: &Cursor<'_>, errors: &mut Errors) {
    check_removals(new_container, old_container, "resource", errors);
    if changes_other_resources(new_container, old_container) {
        errors.push(
            new_container
                .forbidden("only cpu and memory resources for init or sidecar containers are mutable"),
        );
    }
    let restarts = new_container
        .field("resizePolicy")
        .items()
        .filter(|p| p.field("restartPolicy").str() == "RestartContainer");
    if !is_sidecar(new_container) && !new_container.same_as(old_container) {
        let text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
        restarts.for_each(|_| errors.push(new_container.forbidden(text)));
    }
}

/// Reports removed amounts.
fn check_removals(new_value: &Cursor<'_>, old_value: &Cursor<'_>, subject: &str, errors: &mut Errors) {
    let (new, old) = (new_value.field("resources"), old_value.field("resources"));
    for field in ["requests", "limits"] {
        let (new_value, old_value) = (new.field(field), old.field(field));
        if old_value.entries().any(|(name, _)| new_value.entry_str(name).is_none()) {
            errors.push(new_value.forbidden(&format!("{subject} {field} cannot be removed")));
        }
    }
}

/// True if anything except amounts of cpu and memory changed. A container that has claims always counts as changed, because the
/// comparison ignores the claims of the new one.
fn changes_other_resources(new_value: &Cursor<'_>, old_value: &Cursor<'_>) -> bool {
    let (new, old) = (new_value.field("resources"), old_value.field("resources"));
    has_other_amounts(&new, &old)
        || !new_value.field("resizePolicy").same_as(&old_value.field("resizePolicy"))
        || !old.field("claims").is_empty()
}

fn has_other_amounts(new: &Cursor<'_>, old: &Cursor<'_>) -> bool {
    ["limits", "requests"].iter().any(|field| {
        let (new_value, old_value) = (new.field(field), old.field(field));
        let differs = |a: &Cursor<'_>, b: &Cursor<'_>| {
            a.entries().any(|(name, value)| {
                !matches!(name, "cpu" | "memory") && b.entry_str(name) != Some(value.str())
            })
        };
        differs(&new_value, &old_value) || differs(&old_value, &new_value)
    })
}

fn is_set(resources: &Cursor<'_>) -> bool {
    ["requests", "limits"].iter().any(|field| !resources.field(field).is_empty())
}

fn validate_pod_level(new: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (new_value, old_value) = (new.field("resources"), old.field("resources"));
    if !is_set(&new_value) && !is_set(&old_value) {
        return;
    }
    if old_value.is_present() && !new_value.is_present() {
        errors.push(new_value.forbidden("pod-level resources cannot be removed"));
        return;
    }
    check_removals(new, old, "pod-level resource", errors);
    if has_other_amounts(&new_value, &old_value)
        || !checks::is_same(&new_value.field("claims"), &old_value.field("claims"))
    {
        errors.push(new.forbidden("only cpu and memory resources are mutable at pod-level"));
    }
}
