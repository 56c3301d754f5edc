//! An applied configuration on a state of the object.

use std::borrow::Cow;

use jiff::Timestamp;
use portico_machinery::{Object, Status, time};
use portico_schema::apply::{self as engine, Failure, Versions as _};
use portico_schema::managed::{Managed, Manager, Operation};

use super::update::{credit, in_version, owned_changes};
use super::{KindVersions, UNOWNED, conflict, last_applied};
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
/// 409 with the conflicts; 400 for what cannot be merged.
pub(crate) fn apply(versions: &KindVersions<'_>, live: &Object, applying: Applying<'_>) -> Result<Object> {
    let served = versions.served();
    let live = in_version(served, live);
    let mut managed = Managed::read(&live)
        .map_err(|error| Status::internal(format!("failed to decode managed fields: {error}")))?;
    if managed.owners.is_empty() {
        let everything =
            served.info.schema.compare(&Object::default(), &live).map_err(|e| unfit(versions, &live, &e))?;
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
        Err(Failure::Misfit(misfit)) => return Err(unfit(versions, live, &misfit)),
        Err(Failure::Conflicts(conflicts)) if applying.manager == last_applied::MANAGER => {
            let conflicts = last_applied::remaining(versions.served(), live, conflicts);
            if !conflicts.0.is_empty() {
                return Err(Box::new(conflict::status(&conflicts)));
            }
        }
        Err(Failure::Conflicts(conflicts)) => return Err(Box::new(conflict::status(&conflicts))),
    }
    managed.owners = before;
    engine::apply(versions, version, states, &mut managed.owners, manager, true).map_err(|failure| {
        match failure {
            Failure::Misfit(misfit) => unfit(versions, live, &misfit),
            Failure::Conflicts(conflicts) => Box::new(conflict::status(&conflicts)),
        }
    })
}

/// 400: upstream answers 500 for what is the client's mistake.
fn unfit(versions: &KindVersions<'_>, object: &Object, misfit: &engine::Misfit) -> Box<Status> {
    let gvk = &versions.served().info.gvk;
    Box::new(Status::bad_request(format!(
        "failed to merge the patch object ({}/{}; {}, Kind={}): {misfit}",
        object.namespace(),
        object.name(),
        gvk.group_version(),
        gvk.kind
    )))
}
