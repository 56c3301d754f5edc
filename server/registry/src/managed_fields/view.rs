//! Ownership of what a view shows: entries of the parent that own it stand in the view, and go back when it was written.

use portico_machinery::Object;
use portico_schema::apply::Owned;
use portico_schema::fields::Set;
use portico_schema::managed::{Managed, Manager, Operation};

use crate::views::ViewTarget;

/// One field under several names: where each version of the parent has it, and where the view.
pub(crate) struct Shared<'a> {
    /// The version of the parent that is written, and the field in it.
    parent: (&'a str, Set),
    /// Its other versions; nothing for one that has no such view.
    others: Vec<(String, Option<Set>)>,
    view: (&'a str, Set),
}

impl<'a> Shared<'a> {
    /// The field that a view shares with its parent.
    pub(crate) fn of(target: ViewTarget<'a>) -> Self {
        let (in_parent, in_view) = target.viewed.field();
        let others = target.parent.custom.iter().flat_map(|custom| custom.scales());
        Self {
            parent: (&target.parent.api_version, set(in_parent)),
            others: others.map(|(version, path)| (version, path.map(set))).collect(),
            view: (&target.viewed.served.api_version, set(in_view)),
        }
    }

    /// Gives a view the entries of its parent that own the field.
    pub(crate) fn show(&self, parent: &Object, view: &mut Object) {
        let parent = Managed::read(parent).unwrap_or_default();
        let mut shown = Managed::default();
        for (manager, owned) in parent.owners.iter().filter(|(_, owned)| self.owns(owned)) {
            let there = in_version(manager, self.view.0);
            if let Some(time) = parent.times.get(manager) {
                shown.times.insert(there.clone(), time.clone());
            }
            shown.owners.insert(there, owned_in(&self.view, owned.applied));
        }
        shown.write(view);
    }

    /// Gives a parent the entries of its written view: who no longer owns the field there loses it here, too. Entries of
    /// versions that are not there any more go.
    pub(crate) fn write(&self, view: &Object, parent: &mut Object) {
        let mut entries = Managed::read(parent).unwrap_or_default();
        let mut shown = Managed::read(view).unwrap_or_default().owners;
        entries.owners.retain(|_, owned| self.field(&owned.version).is_some());
        for (manager, owned) in &mut entries.owners {
            let Some(Some(field)) = self.field(&owned.version) else { continue };
            // Upstream identifies appliers by name, and updaters by the version written, too: that is the view's there.
            let keeps = manager.operation == Operation::Apply
                && shown.remove(&in_version(manager, self.view.0)).is_some();
            if !keeps {
                owned.set = owned.set.difference(field);
            }
        }
        entries.owners.retain(|_, owned| !owned.set.is_empty());
        for (manager, owned) in shown {
            if owned.set.intersection(&self.view.1).is_empty() {
                continue;
            }
            // As upstream has it, without a time.
            let manager = in_version(&manager, self.parent.0);
            let owned = owned_in(&self.parent, owned.applied);
            if entries.owners.contains_key(&manager) {
                entries.further.push((manager, owned));
            } else {
                if manager.operation == Operation::Update {
                    entries.times.remove(&manager);
                }
                entries.owners.insert(manager, owned);
            }
        }
        entries.write(parent);
    }

    /// The field in a version of the parent, if that has it; nothing for a version that is not there.
    fn field(&self, version: &str) -> Option<Option<&Set>> {
        if version == self.parent.0 {
            return Some(Some(&self.parent.1));
        }
        self.others.iter().find(|(other, _)| other == version).map(|(_, field)| field.as_ref())
    }

    fn owns(&self, owned: &Owned) -> bool {
        let field = self.field(&owned.version).flatten();
        field.is_some_and(|field| !owned.set.intersection(field).is_empty())
    }
}

fn set(path: &str) -> Set {
    Set::of_fields([path.trim_start_matches('.')])
}

fn owned_in((version, set): &(&str, Set), applied: bool) -> Owned {
    Owned { set: set.clone(), version: (*version).into(), applied }
}

/// The same manager of objects of another version; who applies is the same in all.
fn in_version(manager: &Manager, version: &str) -> Manager {
    let version = match manager.operation {
        Operation::Apply => Box::default(),
        Operation::Update => version.into(),
    };
    Manager { version, ..manager.clone() }
}
