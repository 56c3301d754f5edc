//! Owners that wait for the deletion of their dependents. An owner is checked again when the blocking dependent that the last
//! check found is deleted, not after each deletion, because a check reads all dependents.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use portico_registry::ObjectRef;

struct Waiter {
    owner: ObjectRef,
    /// `None` while the dependents are being read.
    dependent: Option<ObjectRef>,
}

/// Waiting owners, by UID. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct WaitingOwners {
    owners: Arc<Mutex<HashMap<String, Waiter>>>,
}

impl WaitingOwners {
    /// Registers an owner before its dependents are read: any deletion from now on wakes it.
    pub(super) fn register(&self, uid: &str, owner: &ObjectRef) {
        self.owners.lock().insert(uid.to_owned(), Waiter { owner: owner.clone(), dependent: None });
    }

    /// Registers the dependent that an owner waits for; there may be others.
    pub(super) fn wait_for(&self, uid: &str, dependent: &ObjectRef) {
        if let Some(waiter) = self.owners.lock().get_mut(uid) {
            waiter.dependent = Some(dependent.clone());
        }
    }

    pub(super) fn remove(&self, uid: &str) {
        self.owners.lock().remove(uid);
    }

    /// Returns the owners among these that a change of a dependent wakes.
    pub(super) fn woken_by(
        &self,
        owners: &[Box<str>],
        dependent: impl FnOnce() -> ObjectRef,
    ) -> Vec<ObjectRef> {
        if owners.is_empty() {
            return Vec::new();
        }
        let waiting = self.owners.lock();
        let mut waiters = owners.iter().filter_map(|uid| waiting.get(&**uid)).peekable();
        if waiters.peek().is_none() {
            return Vec::new();
        }
        let dependent = dependent();
        let woken = waiters.filter(|waiter| waiter.dependent.as_ref().is_none_or(|one| *one == dependent));
        woken.map(|waiter| waiter.owner.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use portico_machinery::GroupResource;

    use super::*;

    fn object(name: &str) -> ObjectRef {
        ObjectRef {
            resource: GroupResource::new("", "configmaps"),
            namespace: "n".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn an_owner_is_woken_by_the_dependent_that_it_waits_for() {
        let (waiting, owner, owners) = (WaitingOwners::default(), object("owner"), ["uid".into()]);
        let woken = |by: &str| waiting.woken_by(&owners, || object(by)).len();
        assert_eq!(woken("a"), 0, "the owner is not registered");
        waiting.register("uid", &owner);
        assert_eq!(
            (woken("a"), woken("b")),
            (1, 1),
            "until the dependents are read, any deletion wakes the owner"
        );
        waiting.wait_for("uid", &object("b"));
        assert_eq!((woken("a"), woken("b")), (0, 1));
        waiting.remove("uid");
        assert_eq!(woken("b"), 0);
    }
}
