//! What the garbage collector reads and writes, through the registry.

use portico_machinery::object::OwnerReference;
use portico_machinery::{Object, Reason, Status};
use portico_registry::{
    Context, DeleteOptions, ObjectRef, Part, Preconditions, Propagation, Registry, Stored, UpdateOptions,
};

use super::decide::{self, Dependent, FOREGROUND, Owner, Verdict};
use super::elsewhere::{ForeignOwner, ForeignOwners};
use super::kind_of;
use crate::outcome::unless;

type Result<T> = std::result::Result<T, Box<Status>>;

/// Who the collector is.
const USER: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

/// Acts as the collector.
#[derive(Clone)]
pub(super) struct Actor {
    registry: Registry,
    context: Context,
    foreign: ForeignOwners,
}

impl Actor {
    pub(super) fn new(registry: Registry, foreign: ForeignOwners) -> Self {
        Self { registry, context: Context::system(USER), foreign }
    }

    pub(super) async fn read(&self, object: &ObjectRef) -> Result<Option<Stored>> {
        self.registry.peek(object).await
    }

    pub(super) async fn dependents(&self, uid: &str) -> Result<Vec<ObjectRef>> {
        self.registry.dependents(uid).await
    }

    /// The dependents, and whether the owner has to wait for one of them.
    pub(super) async fn blocking(&self, uid: &str) -> Result<(Vec<ObjectRef>, bool)> {
        let dependents = self.dependents(uid).await?;
        let mut blocking = false;
        for dependent in &dependents {
            let Some(stored) = self.read(dependent).await? else { continue };
            let references = stored.object().owner_references();
            blocking |= references.iter().any(|r| r.uid == uid && r.block_owner_deletion == Some(true));
        }
        Ok((dependents, blocking))
    }

    /// Decides over an object and does it. Where an owner's fate is not known nothing is done: it is judged again once that
    /// is known.
    pub(super) async fn judge(&self, object: &ObjectRef, stored: &Stored) -> Result<()> {
        let mut owners = Vec::new();
        for reference in stored.object().owner_references() {
            let owner = self.owner(&object.namespace, &reference).await?;
            owners.push((reference, owner));
        }
        let (has_dependents, waited_on) = match owners.iter().any(|o| o.1 == Owner::Waiting) {
            true => self.below(stored.uid()).await?,
            false => (false, false),
        };
        let finalizers = stored.object().finalizers();
        match decide::decide(&Dependent { owners, finalizers, has_dependents, waited_on }) {
            Verdict::Keep | Verdict::Later => Ok(()),
            Verdict::Release(uids) => self.update(object, without(stored, &uids)).await.map(drop),
            Verdict::Delete { propagation, unblock } => {
                let current = if unblock { self.unblock(object, stored).await? } else { stored.clone() };
                self.delete(object, &current, propagation).await
            }
        }
    }

    /// What is known of an owner of a dependent in this namespace.
    pub(super) async fn owner(&self, namespace: &str, reference: &OwnerReference) -> Result<Owner> {
        let Some(kind) = kind_of(reference) else { return Ok(Owner::Unknown) };
        let (name, uid) = (reference.name.clone(), reference.uid.clone());
        let Some(ours) = self.registry.resolve(&kind) else {
            let namespace = namespace.to_owned();
            return Ok(self.foreign.look(ForeignOwner { kind, namespace, name, uid }));
        };
        if ours.namespaced && namespace.is_empty() {
            // Upstream's rule: such a reference can never be right, and is never acted upon.
            return Ok(Owner::Unknown);
        }
        let namespace = if ours.namespaced { namespace.to_owned() } else { String::new() };
        let owner = ObjectRef { resource: ours.resource, namespace, name };
        let Some(stored) = self.read(&owner).await?.filter(|s| s.uid() == reference.uid) else {
            return Ok(Owner::Absent);
        };
        let waiting = stored.is_deleting() && stored.object().finalizers().contains(&FOREGROUND);
        Ok(if waiting { Owner::Waiting } else { Owner::Solid })
    }

    /// Whether there are dependents, and whether one of them waits for its own.
    async fn below(&self, uid: &str) -> Result<(bool, bool)> {
        let dependents = self.dependents(uid).await?;
        for dependent in &dependents {
            let waiting = |s: &Stored| s.is_deleting() && s.object().finalizers().contains(&FOREGROUND);
            if self.read(dependent).await?.as_ref().is_some_and(waiting) {
                return Ok((true, true));
            }
        }
        Ok((!dependents.is_empty(), false))
    }

    /// Takes an owner off a dependent that is still there.
    pub(super) async fn release(&self, dependent: &ObjectRef, uid: &str) -> Result<()> {
        match self.read(dependent).await? {
            Some(stored) => self.update(dependent, without(&stored, &[uid.to_owned()])).await.map(drop),
            None => Ok(()),
        }
    }

    pub(super) async fn remove_finalizer(
        &self,
        object: &ObjectRef,
        stored: &Stored,
        finalizer: &str,
    ) -> Result<()> {
        let mut changed = stored.object().clone();
        let rest: Vec<String> =
            changed.finalizers().into_iter().filter(|f| *f != finalizer).map(str::to_owned).collect();
        changed.set(&["metadata", "finalizers"], rest);
        self.update(object, changed).await.map(drop)
    }

    async fn unblock(&self, object: &ObjectRef, stored: &Stored) -> Result<Stored> {
        let mut changed = stored.object().clone();
        let mut references = changed.owner_references();
        for reference in &mut references {
            reference.block_owner_deletion = Some(false);
        }
        changed.set(&["metadata", "ownerReferences"], references);
        let written = self.update(object, changed).await?;
        Ok(written.unwrap_or_else(|| stored.clone()))
    }

    /// Writes what was read and changed; a newer state is an error, and judged again. What is gone is done.
    async fn update(&self, object: &ObjectRef, changed: Object) -> Result<Option<Stored>> {
        let options = UpdateOptions::default();
        let written =
            self.registry.update(&self.context, &object.resource, Part::Main, changed, &options).await;
        match written {
            Ok(written) => Ok(Some(written.stored)),
            Err(status) if status.reason() == Reason::NotFound => Ok(None),
            Err(status) => Err(status),
        }
    }

    async fn delete(&self, object: &ObjectRef, stored: &Stored, propagation: Propagation) -> Result<()> {
        let options = DeleteOptions {
            preconditions: Preconditions {
                uid: Some(stored.uid().to_owned()),
                resource_version: Some(stored.revision().to_string()),
            },
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        let ObjectRef { resource, namespace, name } = object;
        unless(self.registry.delete(resource, namespace, name, &options).await, &[Reason::NotFound])
    }
}

/// The object without the references to these owners.
fn without(stored: &Stored, uids: &[String]) -> Object {
    let mut changed = stored.object().clone();
    let mut references = changed.owner_references();
    references.retain(|reference| !uids.contains(&reference.uid));
    changed.set(&["metadata", "ownerReferences"], references);
    changed
}
