//! Container statuses: users, device health and volumes.

use std::collections::HashSet;

use portico_machinery::{Cursor, Object};

use portico_validation::{Errors, checks};

/// Lists of statuses, with the corresponding lists of the spec.
const LISTS: [(&str, &str); 3] = [
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
];
const ID_RANGE: &str = "must be between 0 and 2147483647, inclusive";
const MESSAGE_MAX: usize = 1024;
const NO_SUCH_CLAIM: &str = "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";

/// Drops a field whose feature gate is off, unless a container of the old object has it.
pub(super) fn drop_disabled(new: &mut Object, old: &Object) {
    let is_used = LISTS.iter().any(|(list, _)| {
        let mut mounts = old.at(&["status", list]).items().flat_map(|s| s.field("volumeMounts").items());
        mounts.any(|mount| mount.field("volumeStatus").is_present())
    });
    if is_used {
        return;
    }
    for (list, _) in LISTS {
        new.edit_each(&["status", list], |status| {
            status.edit_each(&["volumeMounts"], |mount| {
                mount.remove(&["volumeStatus"]);
            });
        });
    }
}

pub(super) fn validate(new: &Object, errors: &mut Errors) {
    let windows = new.str_at("spec.os.name") == "windows";
    for (list, containers) in LISTS {
        for status in new.at(&["status", list]).items() {
            validate_user(&status.field("user").field("linux"), windows, errors);
            let resources = status.field("allocatedResourcesStatus");
            if containers == "ephemeralContainers" {
                if !resources.is_empty() {
                    errors.push(resources.forbidden("must not be specified in container status"));
                }
                continue;
            }
            let name = status.field("name").str();
            let container =
                new.at(&["spec", containers]).items().find(|other| other.field("name").str() == name);
            for resource in resources.items() {
                if let Some(container) = &container {
                    validate_allocated(&resource.field("name"), container, errors);
                }
                validate_health(&resource.field("resources"), errors);
            }
        }
    }
}

fn validate_user(user: &Cursor<'_>, windows: bool, errors: &mut Errors) {
    if user.is_present() && windows {
        return errors.push(user.forbidden("cannot be set for a windows pod"));
    }
    let groups = user.field("supplementalGroups");
    for id in [user.field("uid"), user.field("gid")].into_iter().chain(groups.items()) {
        checks::in_range(&id, 0, i64::from(i32::MAX), ID_RANGE, errors);
    }
}

/// Validates the name of a claim or resource that the container must have.
fn validate_allocated(name: &Cursor<'_>, container: &Cursor<'_>, errors: &mut Errors) {
    let resources = container.field("resources");
    let Some(claim_name) = name.str().strip_prefix("claim:") else {
        if resources.field("requests").entry_str(name.str()).is_none() {
            errors.push(name.invalid_text("must match one of the container's resource requests"));
        }
        return;
    };
    let is_claimed = resources.field("claims").items().any(|claim| {
        match (claim.field("name").str(), claim.field("request").str()) {
            (claim, "") => claim == claim_name,
            (claim, request) => claim_name.split_once('/') == Some((claim, request)),
        }
    });
    if !is_claimed {
        errors.push(name.invalid_text(NO_SUCH_CLAIM));
    }
}

fn validate_health(resources: &Cursor<'_>, errors: &mut Errors) {
    const KNOWN: [&str; 3] = ["Healthy", "Unhealthy", "Unknown"];
    let mut seen = HashSet::new();
    for resource in resources.items() {
        let (health, message) = (resource.field("health"), resource.field("message"));
        if !KNOWN.contains(&health.str()) {
            errors.push(health.not_supported(&KNOWN));
        }
        if message.opt_str() == Some("") {
            errors.push(message.required("must be non-empty if specified"));
        }
        checks::max_bytes(&message, MESSAGE_MAX, errors);
        checks::unique(&mut seen, &resource.field("resourceID"), errors);
    }
}
