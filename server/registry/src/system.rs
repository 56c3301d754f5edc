//! System metadata: what clients may not set, and what each write sets (upstream's `rest.FillObjectMetaSystemFields`).

use std::collections::HashSet;

use jiff::Timestamp;
use portico_machinery::status::Reason;
use portico_machinery::{Object, Status, names, time};

use crate::Result;

/// Clears what a client may not set on a new object but its revision (upstream's `WipeObjectMetaSystemFields`).
pub fn clear_create(object: &mut Object) {
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid", "creationTimestamp"] {
        object.remove(&["metadata", field]);
    }
}

/// Sets the UID and the time of creation of a new object; clears a link that mutating admission has set.
pub fn fill_create(object: &mut Object, now: Timestamp) {
    object.remove(&["metadata", "selfLink"]);
    object.set(&["metadata", "uid"], uuid::Uuid::new_v4().to_string());
    object.set(&["metadata", "creationTimestamp"], time::rfc3339(now));
}

/// Removes and returns the revision of a new object; what is no number counts as none, 0.
pub(crate) fn take_revision(object: &mut Object) -> i64 {
    let revision = object.resource_version().parse().unwrap_or_default();
    object.remove(&["metadata", "resourceVersion"]);
    revision
}

/// Refuses that revision, with the words of upstream's store, when it comes to writing.
pub(crate) fn refuse_revision(revision: i64) -> Result<()> {
    if revision == 0 {
        return Ok(());
    }
    let words = "resourceVersion should not be set on objects to be created";
    Err(Box::new(Status::failure(Reason::Unknown, words)))
}

/// Gives a name to an object that only has a prefix for one.
pub(crate) fn generate_name(object: &mut Object) {
    let name = names::generate(object.generate_name());
    object.set(&["metadata", "name"], name);
}

/// The namespace of the body must be the path's or empty; cluster-scoped objects lose theirs.
pub fn settle_namespace(object: &mut Object, namespaced: bool, namespace: &str) -> Result<()> {
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

/// Restores what an update cannot touch.
pub(crate) fn prepare_update(new: &mut Object, old: &Object) {
    for field in ["generation", "creationTimestamp"] {
        new.copy_from(old, &["metadata", field]);
    }
    new.remove(&["metadata", "selfLink"]);
    for field in ["uid", "resourceVersion"] {
        // Without these fields the writer means the object that is there.
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

/// Adds one to a generation that counts.
pub(crate) fn bump_generation(object: &mut Object) {
    let generation = object.generation();
    if generation > 0 {
        object.set(&["metadata", "generation"], generation + 1);
    }
}

/// Removes exact duplicates among the owners; the warning names their uids. Upstream looks at what a patch made of an
/// object only after admission, and says so.
pub(crate) fn dedup_owners(object: &mut Object, verb: &str) -> Option<String> {
    if object.at(&["metadata", "ownerReferences"]).len() < 2 {
        return None;
    }
    let (mut kept, mut seen, mut again) = (Vec::new(), HashSet::new(), Vec::new());
    for owner in object.owner_references() {
        if seen.insert(owner.clone()) {
            kept.push(owner);
        } else {
            again.push(owner.uid);
        }
    }
    if again.is_empty() {
        return None;
    }
    object.set(&["metadata", "ownerReferences"], kept);
    let when = if verb == "patch" { " after mutating admission happens" } else { "" };
    Some(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        again.join(", ")
    ))
}
