//! Field ownership after a create, a replacement or a patch: the writer owns the changed fields.

use std::borrow::Cow;

use jiff::Timestamp;
use portico_machinery::{Object, time};
use portico_schema::apply::{self, ApplyError, Comparison, FieldFilter, OwnedFields, Versions as _};
use portico_schema::managed::{self, ManagedFields, Manager, Operation};

use super::versions::KindVersions;
use super::{MAX_UPDATERS, OLD_UPDATERS_MANAGER, UNOWNED};
use crate::served_resource::ServedResource;

const FIELD: [&str; 2] = ["metadata", "managedFields"];

/// Tracking of the fields that a write changes.
#[derive(Clone, Copy)]
pub enum FieldTracking<'a> {
    /// The manager with this name becomes the owner.
    Manager(&'a str),
    /// Ownership is already set, as after an apply.
    Done,
}

/// Sets the managed fields of a new state. Both states are complete and in the storage version; for a create, the old one is
/// empty. If ownership cannot be determined, all entries are removed, as in upstream.
pub fn track(versions: &KindVersions<'_>, live: &Object, new: &mut Object, manager: &str, now: Timestamp) {
    match compute_entries(versions, live, new, manager, now) {
        Ok(NewEntries::Unchanged) => new.copy_from(live, &FIELD),
        Ok(NewEntries::Owned(managed)) => managed.write(new),
        Ok(NewEntries::Untracked) | Err(ApplyError::TypeMismatch(_) | ApplyError::Conflicts(_)) => {
            drop(new.remove(&FIELD))
        }
        Err(ApplyError::Pending) => {}
    }
}

/// New managed fields.
enum NewEntries {
    Unchanged,
    Owned(ManagedFields),
    Untracked,
}

fn compute_entries(
    versions: &KindVersions<'_>,
    live: &Object,
    new: &Object,
    manager: &str,
    now: Timestamp,
) -> Result<NewEntries, ApplyError<Manager>> {
    let served_resource = versions.served_resource();
    let schema = &served_resource.info.schema;
    let from_live = !versions.subresource().is_empty() || managed::has_no_new_entries(new, live);
    let changed = {
        let (live, new) = (in_version(served_resource, live), in_version(served_resource, new));
        for state in [&live, &new] {
            schema.check_state(state).map_err(|misfits| ApplyError::TypeMismatch(misfits.to_string()))?;
        }
        let changed =
            schema.compare(&live, &new).map_err(|misfit| ApplyError::TypeMismatch(misfit.to_string()))?;
        owned_changes(changed, versions.filter(&served_resource.api_version))
    };
    if from_live
        && changed.is_empty()
        && !(served_resource.custom.is_some() && has_other_versions(served_resource, live))
    {
        return Ok(NewEntries::Unchanged);
    }
    let mut managed = initial_entries(live, new, from_live);
    let is_create = live.uid().is_empty();
    if managed.owners.is_empty() && !is_create {
        // Objects without entries stay untracked: tracking starts with a create or an apply.
        return Ok(NewEntries::Untracked);
    }
    {
        let states = (&*in_version(served_resource, live), &*in_version(served_resource, new));
        apply::update_owners(versions, &served_resource.api_version, states, &changed, &mut managed.owners)?;
    }
    assign_changes(&mut managed, versions, changed, manager, now);
    Ok(NewEntries::Owned(managed))
}

/// True if entries use another version, in which the object must then exist.
fn has_other_versions(served_resource: &ServedResource, live: &Object) -> bool {
    let managed = ManagedFields::read(live).unwrap_or_default();
    managed.owners.values().any(|owned| *owned.version != *served_resource.api_version)
}

/// Changes without the fields that never have owners.
pub(super) fn owned_changes(comparison: Comparison, filter: &FieldFilter) -> Comparison {
    comparison.map_sets(|set| {
        let mut set = filter.apply(set);
        set.subtract(&UNOWNED);
        set
    })
}

/// Assigns added and modified fields to the updating manager.
pub(super) fn assign_changes(
    managed: &mut ManagedFields,
    versions: &KindVersions<'_>,
    changed: Comparison,
    manager: &str,
    now: Timestamp,
) {
    let set = changed.into_changed();
    if !set.is_empty() {
        let version: Box<str> = versions.served_resource().api_version.as_str().into();
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
                managed.owners.insert(manager, OwnedFields { set, version, applied: false });
            }
        }
    }
    managed.cap_updaters(MAX_UPDATERS, OLD_UPDATERS_MANAGER);
}

/// Entries before the write: those that the client sends, or the stored ones if it sends none or invalid ones.
fn initial_entries(live: &Object, new: &Object, from_live: bool) -> ManagedFields {
    if !from_live {
        if managed::is_reset(new) {
            return ManagedFields::default();
        }
        if let Ok(managed) = ManagedFields::read(new)
            && !managed.owners.is_empty()
        {
            return managed;
        }
    }
    ManagedFields::read(live).unwrap_or_default()
}

/// State in the version of the request.
pub(super) fn in_version<'o>(served_resource: &ServedResource, object: &'o Object) -> Cow<'o, Object> {
    if served_resource.storage_kind.is_none() || object.map().is_empty() {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    served_resource.to_version(&mut object);
    Cow::Owned(object)
}
