//! Merge of an applied configuration into the state of an object.

use std::borrow::Cow;

use jiff::Timestamp;
use portico_machinery::status::Reason;
use portico_machinery::{Object, Status, time};
use portico_schema::apply::{self as engine, Failure, Versions as _};
use portico_schema::managed::{Managed, Manager, Operation};

use super::update::{credit, in_version, owned_changes};
use super::versions::KindVersions;
use super::{UNOWNED, conflict, last_applied};
use crate::Result;

/// Manager that owns all fields of an object before its first apply.
const BEFORE: &str = "before-first-apply";

/// Parameters of an apply.
#[derive(Clone, Copy)]
pub(crate) struct Applying<'a> {
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
pub(crate) fn apply(versions: &KindVersions<'_>, live: &Object, applying: Applying<'_>) -> Result<Object> {
    let served = versions.served();
    let live = in_version(served, live);
    let mut managed = Managed::read(&live)
        .map_err(|error| Status::internal(format!("failed to decode managed fields: {error}")))?;
    if managed.owners.is_empty() {
        let everything = served.info.schema.compare(&Object::default(), &live).map_err(|e| {
            failed(format!("failed to create manager for existing fields: failed to compare objects: {e}"))
        })?;
        let everything = owned_changes(everything, versions.filter(&served.api_version));
        if !live.uid().is_empty() {
            credit(&mut managed, versions, everything, BEFORE, applying.now);
        }
    }
    let manager = Manager {
        name: applying.manager.into(),
        operation: Operation::Apply,
        version: Box::default(),
        subresource: versions.subresource().into(),
    };
    served
        .info
        .schema
        .check_state(&live)
        .map_err(|misfits| unfit("failed to create typed live object", &live, &misfits))?;
    let new = merge(versions, &live, &mut managed, &manager, applying)?;
    if let Some(owned) = managed.owners.get_mut(&manager) {
        owned.set = owned.set.difference(&UNOWNED);
        if owned.set.is_empty() {
            managed.owners.remove(&manager);
        }
    }
    let mut object = match new {
        Some(new) => {
            managed.times.insert(manager, time::rfc3339(applying.now).into());
            new
        }
        None => Cow::into_owned(live),
    };
    if applying.manager == last_applied::MANAGER {
        last_applied::refresh(&mut object, applying.config);
    }
    managed.write(&mut object);
    Ok(object)
}

/// Merges; merges again with force if all conflicts are covered by kubectl's annotation.
fn merge(
    versions: &KindVersions<'_>,
    live: &Object,
    managed: &mut Managed,
    manager: &Manager,
    applying: Applying<'_>,
) -> Result<Option<Object>> {
    let version = &versions.served().api_version;
    let states = (live, applying.config);
    let before = managed.owners.clone();
    match engine::apply(versions, version, states, &mut managed.owners, manager, applying.force) {
        Ok(new) => return Ok(new),
        Err(Failure::Conflicts(conflicts)) if applying.manager == last_applied::MANAGER => {
            let conflicts = last_applied::remaining(versions.served(), live, conflicts);
            if !conflicts.0.is_empty() {
                return Err(Box::new(conflict::status(&conflicts)));
            }
        }
        Err(failure) => return Err(refused(failure)),
    }
    managed.owners = before;
    engine::apply(versions, version, states, &mut managed.owners, manager, true).map_err(refused)
}

fn refused(failure: Failure<Manager>) -> Box<Status> {
    match failure {
        Failure::TypeMismatch(text) => failed(text),
        Failure::Conflicts(conflicts) => Box::new(conflict::status(&conflicts)),
        // Never returned to a client: the merge is repeated after the conversion.
        Failure::Pending => failed("a conversion is pending".to_owned()),
    }
}

/// Status 500 without a reason, as in upstream, for an object that does not match its type.
pub(crate) fn unfit(what: &str, object: &Object, why: &impl std::fmt::Display) -> Box<Status> {
    let (namespace, name, ty) = (object.namespace(), object.name(), type_of(object));
    failed(format!("{what} ({namespace}/{name}; {ty}): {why}"))
}

fn failed(text: String) -> Box<Status> {
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
