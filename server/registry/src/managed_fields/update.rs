//! Field ownership after a create, a replacement or a patch: the writer owns the changed fields.

use std::borrow::Cow;

use jiff::Timestamp;
use portico_machinery::{Object, time};
use portico_schema::apply::{self, Comparison, Failure, Filter, Owned, Versions as _};
use portico_schema::managed::{self, Managed, Manager, Operation};

use super::versions::KindVersions;
use super::{BUCKET, MAX_UPDATERS, UNOWNED};
use crate::served::ServedResource;

const FIELD: [&str; 2] = ["metadata", "managedFields"];

/// Tracking of the fields that a write changes.
#[derive(Clone, Copy)]
pub enum Tracked<'a> {
    /// The manager with this name becomes the owner.
    By(&'a str),
    /// Ownership is already set, as after an apply.
    Already,
}

/// Sets the managed fields of a new state. Both states are complete and in the storage version; for a create, the old one is
/// empty. If ownership cannot be determined, all entries are removed, as in upstream.
pub fn track(versions: &KindVersions<'_>, live: &Object, new: &mut Object, manager: &str, now: Timestamp) {
    match tracked(versions, live, new, manager, now) {
        Ok(After::AsBefore) => new.copy_from(live, &FIELD),
        Ok(After::Owned(managed)) => managed.write(new),
        Ok(After::Untracked) | Err(Failure::TypeMismatch(_) | Failure::Conflicts(_)) => {
            drop(new.remove(&FIELD))
        }
        Err(Failure::Pending) => {}
    }
}

/// New managed fields.
enum After {
    AsBefore,
    Owned(Managed),
    Untracked,
}

fn tracked(
    versions: &KindVersions<'_>,
    live: &Object,
    new: &Object,
    manager: &str,
    now: Timestamp,
) -> Result<After, Failure<Manager>> {
    let served = versions.served();
    let schema = &served.info.schema;
    let from_live = !versions.subresource().is_empty() || managed::sets_no_other_entries(new, live);
    let changed = {
        let (live, new) = (in_version(served, live), in_version(served, new));
        for state in [&live, &new] {
            schema.check_state(state).map_err(|misfits| Failure::TypeMismatch(misfits.to_string()))?;
        }
        let changed =
            schema.compare(&live, &new).map_err(|misfit| Failure::TypeMismatch(misfit.to_string()))?;
        owned_changes(changed, versions.filter(&served.api_version))
    };
    if from_live && changed.is_empty() && !(served.custom.is_some() && is_named_otherwise(served, live)) {
        return Ok(After::AsBefore);
    }
    let mut managed = current(live, new, from_live);
    let is_create = live.uid().is_empty();
    if managed.owners.is_empty() && !is_create {
        // Objects without entries stay untracked: tracking starts with a create or an apply.
        return Ok(After::Untracked);
    }
    {
        let states = (&*in_version(served, live), &*in_version(served, new));
        apply::update(versions, &served.api_version, states, &changed, &mut managed.owners)?;
    }
    credit(&mut managed, versions, changed, manager, now);
    Ok(After::Owned(managed))
}

/// True if entries use another version, in which the object must then exist.
fn is_named_otherwise(served: &ServedResource, live: &Object) -> bool {
    let managed = Managed::read(live).unwrap_or_default();
    managed.owners.values().any(|owned| *owned.version != *served.api_version)
}

/// Changes without the fields that never have owners.
pub(super) fn owned_changes(comparison: Comparison, filter: &Filter) -> Comparison {
    comparison.filtered(|set| {
        let mut set = filter.of(set);
        set.subtract(&UNOWNED);
        set
    })
}

/// Assigns added and modified fields to the updating manager.
pub(super) fn credit(
    managed: &mut Managed,
    versions: &KindVersions<'_>,
    changed: Comparison,
    manager: &str,
    now: Timestamp,
) {
    let set = changed.into_changed();
    if !set.is_empty() {
        let version: Box<str> = versions.served().api_version.as_str().into();
        let manager = Manager {
            name: manager.into(),
            operation: Operation::Update,
            version: version.clone(),
            subresource: versions.subresource().into(),
        };
        managed.times.insert(manager.clone(), time::rfc3339(now).into());
        match managed.owners.get_mut(&manager) {
            Some(owned) => owned.set.extend(set),
            None => {
                managed.owners.insert(manager, Owned { set, version, applied: false });
            }
        }
    }
    managed.cap_updaters(MAX_UPDATERS, BUCKET);
}

/// Entries before the write: those that the client sends, or the stored ones if it sends none or invalid ones.
fn current(live: &Object, new: &Object, from_live: bool) -> Managed {
    if !from_live {
        if managed::is_reset(new) {
            return Managed::default();
        }
        if let Ok(managed) = Managed::read(new)
            && !managed.owners.is_empty()
        {
            return managed;
        }
    }
    Managed::read(live).unwrap_or_default()
}

/// State in the version of the request.
pub(super) fn in_version<'o>(served: &ServedResource, object: &'o Object) -> Cow<'o, Object> {
    if served.stored_as.is_none() || object.map().is_empty() {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    served.to_version(&mut object);
    Cow::Owned(object)
}
