//! An applied configuration on a state of the object.

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

/// Who is credited with everything that an object held before the first apply.
const BEFORE: &str = "before-first-apply";

/// What is applied, by whom, and how.
#[derive(Clone, Copy)]
pub(crate) struct Applying<'a> {
    /// The configuration, as the client sent it.
    pub(crate) config: &'a Object,
    /// The manager.
    pub(crate) manager: &'a str,
    /// Whether other managers' fields are taken.
    pub(crate) force: bool,
    /// When.
    pub(crate) now: Timestamp,
}

/// The state after the apply, in the version of the request, neither typed nor defaulted. `live` is in the storage
/// version, or what a new object of the kind holds.
///
/// # Errors
/// 409 with the conflicts; 500 for what cannot be merged.
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

/// Merges, a second time and with force when the conflicts are with what kubectl's annotation covers.
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
        // Nobody sees it: it is done anew.
        Failure::Pending => failed("a conversion is pending".to_owned()),
    }
}

/// 500 without a reason, which clients of upstream know: the object does not fit.
pub(crate) fn unfit(what: &str, object: &Object, why: &impl std::fmt::Display) -> Box<Status> {
    let (namespace, name, ty) = (object.namespace(), object.name(), type_of(object));
    failed(format!("{what} ({namespace}/{name}; {ty}): {why}"))
}

fn failed(text: String) -> Box<Status> {
    Box::new(Status::failure(Reason::Unknown, text))
}

/// The type that an object has, as upstream prints it: the group may be empty.
pub(crate) fn type_of(object: &Object) -> String {
    let (mut version, mut kind) = (object.api_version(), object.kind());
    // Upstream ignores values that are not versions.
    if version.matches('/').count() > 1 {
        (version, kind) = ("", "");
    }
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={kind}")
}
