//! Ownership of what a view shows: entries of the parent that own it stand in the view, and go back when it was written.

use portico_machinery::Object;
use portico_schema::apply::Owned;
use portico_schema::fields::Set;
use portico_schema::managed::{Managed, Manager, Operation};

use crate::views::Of;

/// One field under two names: where and in which version the parent has it, and where and in which the view.
pub(crate) struct Shared<'a> {
    parent: (&'a str, Set),
    view: (&'a str, Set),
}

impl<'a> Shared<'a> {
    /// The field that a view shares with its parent.
    pub(crate) fn of(of: Of<'a>) -> Self {
        let (in_parent, in_view) = of.viewed.field();
        let set = |path: &str| Set::of_fields([path.trim_start_matches('.')]);
        Self {
            parent: (&of.parent.api_version, set(in_parent)),
            view: (&of.viewed.served.api_version, set(in_view)),
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

    /// Gives a parent the entries of its written view: who no longer owns the field there loses it here, too.
    pub(crate) fn write(&self, view: &Object, parent: &mut Object) {
        let mut entries = Managed::read(parent).unwrap_or_default();
        let mut shown = Managed::read(view).unwrap_or_default().owners;
        entries.owners.retain(|_, owned| *owned.version == *self.parent.0);
        for (manager, owned) in &mut entries.owners {
            let keeps = shown.remove(&in_version(manager, self.view.0)).is_some();
            if !keeps {
                owned.set = owned.set.difference(&self.parent.1);
            }
        }
        entries.owners.retain(|_, owned| !owned.set.is_empty());
        for (manager, owned) in shown {
            // As upstream has it, without a time.
            let manager = in_version(&manager, self.parent.0);
            entries.owners.insert(manager, owned_in(&self.parent, owned.applied));
        }
        entries.write(parent);
    }

    fn owns(&self, owned: &Owned) -> bool {
        *owned.version == *self.parent.0 && !owned.set.intersection(&self.parent.1).is_empty()
    }
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
