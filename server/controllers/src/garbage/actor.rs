//! Reads and writes of the garbage collector through the registry.

use futures::future::join_all;
use portico_machinery::object::OwnerReference;
use portico_machinery::{GroupVersion, GroupVersionKind, Reason, Status};
use portico_registry::{
    Context, DeleteOptions, ObjectPart, ObjectPath, ObjectRef, Patch, PatchOptions, Preconditions,
    Propagation, Registry, StoredObject,
};
use serde::Serialize;

use super::decision::{self, Dependent, DependentVerdict, FOREGROUND, OwnerState};
use super::foreign_objects::{ForeignOwner, ForeignOwners};
use crate::write_result::ignore_reasons;

type Result<T> = std::result::Result<T, Box<Status>>;

/// User name of the garbage collector.
const USER: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
/// Maximum number of concurrent writes.
const MAX_CONCURRENT_WRITES: usize = 64;

/// Executes the decisions of the garbage collector.
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

    pub(super) async fn read(&self, object: &ObjectRef) -> Result<Option<StoredObject>> {
        self.registry.get_stored(object).await
    }

    pub(super) async fn dependents(&self, uid: &str) -> Result<Vec<ObjectRef>> {
        self.registry.dependents(uid).await
    }

    /// Returns the last dependent that blocks the deletion of the owner, as the others are deleted before it.
    pub(super) async fn blocking<'a>(
        &self,
        dependents: &'a [ObjectRef],
        uid: &str,
    ) -> Result<Option<&'a ObjectRef>> {
        for dependent in dependents.iter().rev() {
            let Some(stored) = self.read(dependent).await? else { continue };
            let references = stored.object().owner_references();
            if references.iter().any(|r| r.uid == uid && r.block_owner_deletion == Some(true)) {
                return Ok(Some(dependent));
            }
        }
        Ok(None)
    }

    /// Decides about an object and executes the decision. While the state of an owner is unknown, does nothing; the object is
    /// checked again once the state is known.
    pub(super) async fn check(&self, object: &ObjectRef, stored: &StoredObject) -> Result<()> {
        let mut owners = Vec::new();
        for reference in stored.object().owner_references() {
            let owner = self.owner(&object.namespace, &reference).await?;
            owners.push((reference, owner));
        }
        let (has_dependents, has_waiting_dependent) = match owners.iter().any(|o| o.1 == OwnerState::Waiting)
        {
            true => self.dependent_state(stored.uid()).await?,
            false => (false, false),
        };
        let finalizers = stored.object().finalizers();
        match decision::decide(&Dependent { owners, finalizers, has_dependents, has_waiting_dependent }) {
            DependentVerdict::Keep | DependentVerdict::Defer => Ok(()),
            DependentVerdict::RemoveOwners(uids) => {
                self.set_owners(object, stored, &owners_without(stored, &uids)).await.map(drop)
            }
            DependentVerdict::Delete { propagation, unblock } => {
                let current = if unblock { self.unblock(object, stored).await? } else { stored.clone() };
                self.delete(object, &current, propagation).await
            }
        }
    }

    /// Returns the state of an owner of a dependent in this namespace.
    pub(super) async fn owner(&self, namespace: &str, reference: &OwnerReference) -> Result<OwnerState> {
        let Some(kind) = kind_of(reference) else { return Ok(OwnerState::Unknown) };
        let Some(resource) = self.registry.resolve(&kind) else {
            return Ok(self.foreign_owner(namespace, reference, kind));
        };
        if resource.namespaced && namespace.is_empty() {
            // Upstream's rule: such a reference is invalid and is ignored.
            return Ok(OwnerState::Unknown);
        }
        let owner_namespace = if resource.namespaced { namespace.to_owned() } else { String::new() };
        let owner = ObjectRef {
            resource: resource.resource,
            namespace: owner_namespace,
            name: reference.name.clone(),
        };
        let Some(stored) = self.read(&owner).await?.filter(|s| s.uid() == reference.uid) else {
            // A version that the definition does not name may be served by another server.
            return Ok(match resource.has_version {
                true if self.registry.may_be_unreadable(&owner.resource, &reference.uid).await? => {
                    OwnerState::Unknown
                }
                true => OwnerState::Absent,
                false => self.foreign_owner(namespace, reference, kind),
            });
        };
        let waiting = stored.is_deleting() && stored.object().finalizers().contains(&FOREGROUND);
        Ok(if waiting { OwnerState::Waiting } else { OwnerState::Solid })
    }

    /// Returns the state of an owner whose kind this server does not serve.
    fn foreign_owner(
        &self,
        namespace: &str,
        reference: &OwnerReference,
        kind: GroupVersionKind,
    ) -> OwnerState {
        let (name, uid) = (reference.name.clone(), reference.uid.clone());
        self.foreign.state(ForeignOwner { kind, namespace: namespace.to_owned(), name, uid })
    }

    /// Returns whether there are dependents, and whether one of them waits for its own dependents.
    async fn dependent_state(&self, uid: &str) -> Result<(bool, bool)> {
        let dependents = self.dependents(uid).await?;
        for dependent in &dependents {
            let waiting = |s: &StoredObject| s.is_deleting() && s.object().finalizers().contains(&FOREGROUND);
            if self.read(dependent).await?.as_ref().is_some_and(waiting) {
                return Ok((true, true));
            }
        }
        Ok((!dependents.is_empty(), false))
    }

    /// Removes an owner from these dependents, in concurrent writes that share commits.
    ///
    /// # Errors
    /// Returns the first failure of a group of concurrent writes, after all of them have ended.
    pub(super) async fn remove_owner_from_all(&self, dependents: &[ObjectRef], uid: &str) -> Result<()> {
        for chunk in dependents.chunks(MAX_CONCURRENT_WRITES) {
            let writes = chunk.iter().map(|dependent| self.remove_owner(dependent, uid));
            join_all(writes).await.into_iter().collect::<Result<()>>()?;
        }
        Ok(())
    }

    /// Removes an owner from a dependent if the dependent still exists.
    async fn remove_owner(&self, dependent: &ObjectRef, uid: &str) -> Result<()> {
        match self.read(dependent).await? {
            Some(stored) => {
                let owners = owners_without(&stored, &[uid.to_owned()]);
                self.set_owners(dependent, &stored, &owners).await.map(drop)
            }
            None => Ok(()),
        }
    }

    pub(super) async fn remove_finalizer(
        &self,
        object: &ObjectRef,
        stored: &StoredObject,
        finalizer: &str,
    ) -> Result<()> {
        let mut finalizers = stored.object().finalizers();
        finalizers.retain(|other| *other != finalizer);
        let change =
            PatchedMetadata { finalizers: Some(finalizers), ..PatchedMetadata::precondition_of(stored) };
        self.patch(object, change).await.map(drop)
    }

    async fn unblock(&self, object: &ObjectRef, stored: &StoredObject) -> Result<StoredObject> {
        let mut references = stored.object().owner_references();
        for reference in &mut references {
            reference.block_owner_deletion = Some(false);
        }
        let written = self.set_owners(object, stored, &references).await?;
        Ok(written.unwrap_or_else(|| stored.clone()))
    }

    async fn set_owners(
        &self,
        object: &ObjectRef,
        stored: &StoredObject,
        owners: &[OwnerReference],
    ) -> Result<Option<StoredObject>> {
        self.patch(
            object,
            PatchedMetadata { owner_references: Some(owners), ..PatchedMetadata::precondition_of(stored) },
        )
        .await
    }

    /// Patches metadata of exactly the state that was read, in any stored version. A newer state is an error, and the object is
    /// checked again. Returns `None` if the object is gone.
    async fn patch(&self, object: &ObjectRef, metadata: PatchedMetadata<'_>) -> Result<Option<StoredObject>> {
        let patch = serde_json::to_vec(&MetadataPatch { metadata }).map_err(Status::internal)?;
        let path = ObjectPath { part: ObjectPart::Main, namespace: &object.namespace, name: &object.name };
        let (patch, options) = (Patch::Merge(patch.into()), PatchOptions::default());
        let patched = self.registry.patch(&self.context, &object.resource, path, &patch, &options).await;
        match patched {
            Ok(written) => Ok(Some(written.stored)),
            Err(status) if status.reason() == Reason::NotFound => Ok(None),
            Err(status) => Err(status),
        }
    }

    async fn delete(
        &self,
        object: &ObjectRef,
        stored: &StoredObject,
        propagation: Propagation,
    ) -> Result<()> {
        let options = DeleteOptions {
            preconditions: Preconditions {
                uid: Some(stored.uid().to_owned()),
                resource_version: Some(stored.revision().to_string()),
            },
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        let ObjectRef { resource, namespace, name } = object;
        ignore_reasons(
            self.registry.delete(&self.context, resource, namespace, name, &options).await,
            &[Reason::NotFound],
        )
    }
}

/// Merge patch of metadata.
#[derive(Serialize)]
struct MetadataPatch<'a> {
    metadata: PatchedMetadata<'a>,
}

/// Preconditions and changed fields of a metadata patch.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PatchedMetadata<'a> {
    uid: &'a str,
    resource_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    finalizers: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_references: Option<&'a [OwnerReference]>,
}

impl<'a> PatchedMetadata<'a> {
    fn precondition_of(stored: &'a StoredObject) -> Self {
        let (uid, resource_version) = (stored.uid(), stored.revision().to_string());
        Self { uid, resource_version, finalizers: None, owner_references: None }
    }
}

/// Returns the object's owners except these.
fn owners_without(stored: &StoredObject, uids: &[String]) -> Vec<OwnerReference> {
    let mut references = stored.object().owner_references();
    references.retain(|reference| !uids.contains(&reference.uid));
    references
}

/// Returns the group, version and kind that a reference names; `None` if its `apiVersion` is invalid.
fn kind_of(reference: &OwnerReference) -> Option<GroupVersionKind> {
    Some(reference.api_version.parse::<GroupVersion>().ok()?.kind(&reference.kind))
}
