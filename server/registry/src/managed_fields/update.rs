//! Ownership after a create, a replacement or a patch: whoever writes owns what they change.

use std::borrow::Cow;

use jiff::Timestamp;
use portico_machinery::{Object, time};
use portico_schema::apply::{self, Comparison, Filter, Misfit, Owned, Versions as _};
use portico_schema::managed::{self, Managed, Manager, Operation};

use super::{BUCKET, KindVersions, MAX_UPDATERS, UNOWNED};
use crate::served::Served;

const FIELD: [&str; 2] = ["metadata", "managedFields"];

/// Who owns what a write changes.
#[derive(Clone, Copy)]
pub(crate) enum Tracked<'a> {
    /// The manager of this name.
    By(&'a str),
    /// The object says so already: it was applied.
    Already,
}

/// Sets the managed fields of a new state. Both states are complete and in the storage version; a create comes from an
/// empty object. What cannot be compared keeps the entries that it had, as upstream does.
pub(crate) fn track(
    versions: &KindVersions<'_>,
    live: &Object,
    new: &mut Object,
    manager: &str,
    now: Timestamp,
) {
    if try_track(versions, live, new, manager, now).is_err() {
        new.copy_from(live, &FIELD);
    }
}

fn try_track(
    versions: &KindVersions<'_>,
    live: &Object,
    new: &mut Object,
    manager: &str,
    now: Timestamp,
) -> Result<(), Misfit> {
    let served = versions.served();
    let from_live = !versions.subresource().is_empty() || managed::says_nothing_else(new, live);
    let changed = {
        let (live, new) = (in_version(served, live), in_version(served, new));
        owned_changes(served.info.schema.compare(&live, &new)?, versions.filter(&served.api_version))
    };
    if from_live && changed.is_empty() {
        new.copy_from(live, &FIELD);
        return Ok(());
    }
    let mut managed = current(live, new, from_live);
    let is_create = live.uid().is_empty();
    if managed.owners.is_empty() && !is_create {
        // Nobody is tracked: that begins with a create or an apply.
        new.remove(&FIELD);
        return Ok(());
    }
    {
        let states = (&*in_version(served, live), &*in_version(served, new));
        apply::update(versions, &served.api_version, states, &changed, &mut managed.owners)?;
    }
    credit(&mut managed, versions, changed, manager, now);
    managed.write(new);
    Ok(())
}

/// What differs but for what nobody owns.
pub(super) fn owned_changes(comparison: Comparison, filter: &Filter) -> Comparison {
    comparison.filtered(|set| {
        let mut set = filter.of(set);
        set.subtract(&UNOWNED);
        set
    })
}

/// Gives what was added or modified to whoever updated.
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

/// The entries that the write begins with: the client's, unless it sends none or wrong ones.
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

/// A state in the version of the request.
pub(super) fn in_version<'o>(served: &Served, object: &'o Object) -> Cow<'o, Object> {
    if served.stored_as.is_none() || object.map().is_empty() {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    served.to_version(&mut object);
    Cow::Owned(object)
}
