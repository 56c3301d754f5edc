//! Merge of an applied configuration into the state of an object.

use std::borrow::Cow;

use jiff::Timestamp;
use portico_machinery::status::Reason;
use portico_machinery::{Object, Status, time};
use portico_schema::apply::{self as engine, ApplyError, Versions as _};
use portico_schema::managed::{ManagedFields, Manager, Operation};

use super::update::{assign_changes, in_version, owned_changes};
use super::versions::KindVersions;
use super::{UNOWNED, conflict, last_applied};
use crate::Result;

/// Manager that owns all fields of an object before its first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Parameters of an apply.
#[derive(Clone, Copy)]
pub(crate) struct ApplyRequest<'a> {
    /// Configuration as sent by the client.
    pub(crate) config: &'a Object,
    /// Field manager.
    pub(crate) manager: &'a str,
    /// True if fields of other managers are taken over.
    pub(crate) force: bool,
    /// Time of the request.
    pub(crate) now: Timestamp,
}

/// Returns the state after the apply, in the version of the request, neither typed nor defaulted. `live` is in the storage
/// version; for a create it is an empty object of the kind.
///
/// # Errors
/// Status 409 with the conflicts; 500 if the objects cannot be merged.
pub(crate) fn apply(versions: &KindVersions<'_>, live: &Object, request: ApplyRequest<'_>) -> Result<Object> {
    let served_resource = versions.served_resource();
    let live = in_version(served_resource, live);
    let mut managed = ManagedFields::read(&live)
        .map_err(|error| Status::internal(format!("failed to decode managed fields: {error}")))?;
    if managed.owners.is_empty() {
        let everything = served_resource.info.schema.compare(&Object::default(), &live).map_err(|e| {
            internal_failure(format!(
                "failed to create manager for existing fields: failed to compare objects: {e}"
            ))
        })?;
        let everything = owned_changes(everything, versions.filter(&served_resource.api_version));
        if !live.uid().is_empty() {
            assign_changes(&mut managed, versions, everything, BEFORE_FIRST_APPLY, request.now);
        }
    }
    let manager = Manager {
        name: request.manager.into(),
        operation: Operation::Apply,
        version: Box::default(),
        subresource: versions.subresource().into(),
    };
    served_resource
        .info
        .schema
        .check_state(&live)
        .map_err(|misfits| mismatch_status("failed to create typed live object", &live, &misfits))?;
    let new = merge(versions, &live, &mut managed, &manager, request)?;
    if let Some(owned) = managed.owners.get_mut(&manager) {
        owned.set = owned.set.difference(&UNOWNED);
        if owned.set.is_empty() {
            managed.owners.remove(&manager);
        }
    }
    let mut object = match new {
        Some(new) => {
            managed.times.insert(manager, time::rfc3339(request.now).into());
            new
        }
        None => Cow::into_owned(live),
    };
    if request.manager == last_applied::MANAGER {
        last_applied::refresh(&mut object, request.config);
    }
    managed.write(&mut object);
    Ok(object)
}

/// Merges; merges again with force if all conflicts are covered by kubectl's annotation.
fn merge(
    versions: &KindVersions<'_>,
    live: &Object,
    managed: &mut ManagedFields,
    manager: &Manager,
    request: ApplyRequest<'_>,
) -> Result<Option<Object>> {
    let version = &versions.served_resource().api_version;
    let states = (live, request.config);
    let old_owners = managed.owners.clone();
    match engine::apply(versions, version, states, &mut managed.owners, manager, request.force) {
        Ok(new) => return Ok(new),
        Err(ApplyError::Conflicts(conflicts)) if request.manager == last_applied::MANAGER => {
            let conflicts = last_applied::remaining_conflicts(versions.served_resource(), live, conflicts);
            if !conflicts.0.is_empty() {
                return Err(Box::new(conflict::status(&conflicts)));
            }
        }
        Err(failure) => return Err(failure_status(failure)),
    }
    managed.owners = old_owners;
    engine::apply(versions, version, states, &mut managed.owners, manager, true).map_err(failure_status)
}

fn failure_status(failure: ApplyError<Manager>) -> Box<Status> {
    match failure {
        ApplyError::TypeMismatch(text) => internal_failure(text),
        ApplyError::Conflicts(conflicts) => Box::new(conflict::status(&conflicts)),
        // Never returned to a client: the merge is repeated after the conversion.
        ApplyError::Pending => internal_failure("a conversion is pending".to_owned()),
    }
}

/// Status 500 without a reason, as in upstream, for an object that does not match its type.
pub(crate) fn mismatch_status(
    context: &str,
    object: &Object,
    reason: &impl std::fmt::Display,
) -> Box<Status> {
    let (namespace, name, ty) = (object.namespace(), object.name(), type_of(object));
    internal_failure(format!("{context} ({namespace}/{name}; {ty}): {reason}"))
}

fn internal_failure(text: String) -> Box<Status> {
    Box::new(Status::failure(Reason::Unknown, text))
}

/// Type of an object as printed by upstream: the group may be empty.
pub(crate) fn type_of(object: &Object) -> String {
    let (mut version, mut kind) = (object.api_version(), object.kind());
    // Upstream ignores invalid versions.
    if version.matches('/').count() > 1 {
        (version, kind) = ("", "");
    }
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={kind}")
}
