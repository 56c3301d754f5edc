//! System metadata: removes fields that clients may not set, and sets fields on
//! each write (upstream's `rest.FillObjectMetaSystemFields`).

use std::collections::HashSet;

use jiff::Timestamp;
use portico_machinery::status::Reason;
use portico_machinery::{Object, Status, names, time};

use crate::Result;

/// Clears metadata that a client may not set on a new object, except its revision (upstream's `WipeObjectMetaSystemFields`).
pub fn clear_create(object: &mut Object) {
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid", "creationTimestamp"] {
        object.remove(&["metadata", field]);
    }
}

/// Sets UID and creation time of a new object; clears a `selfLink` that mutating admission has set.
pub fn fill_create(object: &mut Object, now: Timestamp) {
    object.remove(&["metadata", "selfLink"]);
    object.set(&["metadata", "uid"], uuid::Uuid::new_v4().to_string());
    object.set(&["metadata", "creationTimestamp"], time::rfc3339(now));
}

/// Removes and returns the revision of a new object; 0 if it is absent or not a number.
pub(crate) fn take_revision(object: &mut Object) -> i64 {
    let revision = object.resource_version().parse().unwrap_or_default();
    object.remove(&["metadata", "resourceVersion"]);
    revision
}

/// Refuses a new object with a revision before it is stored, with the message of upstream's storage.
pub(crate) fn refuse_revision(revision: i64) -> Result<()> {
    if revision == 0 {
        return Ok(());
    }
    let message = "resourceVersion should not be set on objects to be created";
    Err(Box::new(Status::failure(Reason::Unknown, message)))
}

/// Generates a name from the prefix in `generateName`.
pub(crate) fn generate_name(object: &mut Object) {
    let name = names::generate(object.generate_name());
    object.set(&["metadata", "name"], name);
}

/// Sets the namespace of the path; status 400 if the body contains a different one. Clears it for cluster-scoped objects.
pub fn default_namespace(object: &mut Object, namespaced: bool, namespace: &str) -> Result<()> {
    if !namespaced {
        object.remove(&["metadata", "namespace"]);
        return Ok(());
    }
    match object.namespace() {
        same if same == namespace => Ok(()),
        "" => {
            object.set(&["metadata", "namespace"], namespace);
            Ok(())
        }
        _ => Err(Box::new(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ))),
    }
}

/// Restores fields that an update cannot change.
pub(crate) fn prepare_update(new: &mut Object, old: &Object) {
    for field in ["generation", "creationTimestamp"] {
        new.copy_from(old, &["metadata", field]);
    }
    new.remove(&["metadata", "selfLink"]);
    for field in ["uid", "resourceVersion"] {
        // Without these fields, the write applies to the existing object.
        if new.at(&["metadata", field]).str().is_empty() {
            new.copy_from(old, &["metadata", field]);
        }
    }
    if old.deletion_timestamp().is_some() {
        new.copy_from(old, &["metadata", "deletionTimestamp"]);
    }
    let grace = &["metadata", "deletionGracePeriodSeconds"];
    if !new.at(grace).is_present() && old.at(grace).is_present() {
        new.copy_from(old, grace);
    }
}

/// Increments a generation, unless the kind has none.
pub(crate) fn bump_generation(object: &mut Object) {
    let generation = object.generation();
    if generation > 0 {
        object.set(&["metadata", "generation"], generation + 1);
    }
}

/// Removes exact duplicates of owners; the warning contains their UIDs. Upstream checks the result of a patch only after
/// admission, which the warning mentions.
pub(crate) fn dedup_owners(object: &mut Object, verb: &str) -> Option<String> {
    if object.at(&["metadata", "ownerReferences"]).len() < 2 {
        return None;
    }
    let (mut unique, mut seen, mut duplicates) = (Vec::new(), HashSet::new(), Vec::new());
    for owner in object.owner_references() {
        if seen.insert(owner.clone()) {
            unique.push(owner);
        } else {
            duplicates.push(owner.uid);
        }
    }
    if duplicates.is_empty() {
        return None;
    }
    object.set(&["metadata", "ownerReferences"], unique);
    let when = if verb == "patch" { " after mutating admission happens" } else { "" };
    Some(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        duplicates.join(", ")
    ))
}
