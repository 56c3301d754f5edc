//! The entries of an object as a view of it has them (`scale`), and back: only one field passes, under another path and
//! version.

use super::{Managed, Manager, Operation};
use crate::apply::Owned;
use crate::fields::{PathElement, Set};

/// Where the one field stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// Its path in the object.
    pub path: Vec<PathElement>,
    /// The `apiVersion` of the object.
    pub version: Box<str>,
    /// Its path in the view.
    pub view_path: Vec<PathElement>,
    /// The `apiVersion` of the view.
    pub view_version: Box<str>,
}

impl Shared {
    fn is_in(&self, owned: &Owned) -> bool {
        *owned.version == *self.version && owned.set.has(&self.path.iter().collect::<Vec<_>>())
    }

    /// The same manager under another version.
    fn moved(manager: &Manager, version: &str) -> Manager {
        let version = if manager.operation == Operation::Apply { "" } else { version };
        Manager { version: version.into(), ..manager.clone() }
    }
}

impl Managed {
    /// Who owns the field, as entries of the view.
    #[must_use]
    pub fn shown(&self, shared: &Shared) -> Self {
        let mut shown = Self::default();
        let mut set = Set::default();
        set.insert(&shared.view_path);
        for (manager, owned) in self.owners.iter().filter(|(_, owned)| shared.is_in(owned)) {
            let there = Shared::moved(manager, &shared.view_version);
            if let Some(time) = self.times.get(manager) {
                shown.times.insert(there.clone(), time.clone());
            }
            let version = shared.view_version.clone();
            shown.owners.insert(there, Owned { set: set.clone(), version, applied: owned.applied });
        }
        shown
    }

    /// These entries once the view has been written: whoever lost the field there loses it here, and whoever came to own
    /// it there gets an entry, which as upstream's has no time.
    #[must_use]
    pub fn written_back(mut self, view: &Self, shared: &Shared) -> Self {
        let mut set = Set::default();
        set.insert(&shared.path);
        self.owners.retain(|manager, owned| {
            let stolen = shared.is_in(owned)
                && !view.owners.contains_key(&Shared::moved(manager, &shared.view_version));
            if stolen {
                owned.set = owned.set.difference(&set);
            }
            !owned.set.is_empty()
        });
        for (manager, owned) in &view.owners {
            let here = Shared::moved(manager, &shared.version);
            let (version, applied) = (shared.version.clone(), owned.applied);
            let entry = self.owners.entry(here).or_insert(Owned { set: Set::default(), version, applied });
            entry.set = entry.set.union(&set);
        }
        self
    }
}
