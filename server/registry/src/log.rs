//! Access to the complete log and to the store's indexes, for controllers that handle every kind.
//!
//! No function in this module loads a resource into memory.

use std::sync::Arc;

use portico_machinery::flow_control::StoredObjects;
use portico_machinery::{GroupResource, GroupVersionKind, Status};
use portico_store::{Event, EventType, Incomplete, Key, Resource, StoreError, Subscription, WatchError};

use crate::Result;
use crate::failure;
use crate::registry::Registry;
use crate::served::ServedResource;
use crate::stored::Stored;
use crate::unreadable;

/// Group of internal records, which no API serves.
const INTERNAL: &str = "portico.dev";

/// Reference to a stored object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectRef {
    /// Group and resource under which the object is stored.
    pub resource: GroupResource,
    /// Namespace, empty at cluster scope.
    pub namespace: String,
    pub name: String,
}

impl ObjectRef {
    fn of(key: &Key) -> Self {
        Self {
            resource: GroupResource::clone(key.resource()),
            namespace: key.namespace().to_owned(),
            name: key.name().to_owned(),
        }
    }
}

/// Committed change of an object of any kind, decoded only on request.
#[derive(Clone, Debug)]
pub struct Logged {
    event: Arc<Event>,
}

impl Logged {
    /// Storage group and resource.
    #[must_use]
    pub fn resource(&self) -> &GroupResource {
        self.event.record.key.resource()
    }

    /// Namespace, empty at cluster scope.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.event.record.key.namespace()
    }

    #[must_use]
    pub fn name(&self) -> &str {
        self.event.record.key.name()
    }

    /// Reference to the object.
    #[must_use]
    pub fn object(&self) -> ObjectRef {
        ObjectRef::of(&self.event.record.key)
    }

    /// True if the object was deleted.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.event.event_type == EventType::Deleted
    }

    #[must_use]
    pub fn uid(&self) -> &str {
        self.event.record.value.uid()
    }

    /// UIDs of the owners; for a deletion those of the last state.
    #[must_use]
    pub fn owners(&self) -> &[Box<str>] {
        self.event.record.value.owners()
    }

    /// UIDs of the owners in the previous state.
    #[must_use]
    pub fn owners_before(&self) -> &[Box<str>] {
        self.event.previous.as_ref().map_or(&[], |record| record.value.owners())
    }

    /// Value of a selectable field, without decoding; `None` if the kind has no such field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.event.record.value.field(name)
    }

    /// Previous state; `None` for a new object and if the previous state is unreadable.
    #[must_use]
    pub fn before(&self) -> Option<Stored> {
        let previous = self.event.previous.as_ref().filter(|record| !record.value.is_unreadable())?;
        Some(Stored::new(Arc::clone(previous)))
    }

    /// Current state; for a deletion the last state.
    #[must_use]
    pub fn stored(&self) -> Stored {
        Stored::new(Arc::clone(&self.event.record))
    }
}

/// Reader of the log from a revision on.
pub struct Log {
    subscription: Subscription,
}

/// Failure of a log reader: it was too slow, or the store closed. Missed changes have to be looked up in the indexes.
#[derive(Clone, Debug, thiserror::Error)]
#[error(transparent)]
pub struct LogError(#[from] WatchError);

impl Log {
    /// Returns the next change, in order of revision.
    ///
    /// # Errors
    /// [`LogError`], which ends the log.
    pub async fn next(&mut self) -> Result<Logged, LogError> {
        Ok(Logged { event: self.subscription.next().await? })
    }
}

/// Storage resource and scope of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Group and resource under which the objects are stored.
    pub resource: GroupResource,
    /// True if objects have namespaces.
    pub namespaced: bool,
    /// True if the kind has the requested version, served or not.
    pub is_named: bool,
}

impl Registry {
    /// Subscribes to all commits after the current revision.
    ///
    /// # Errors
    /// Status 503 if the store is closed.
    pub fn log(&self) -> Result<Log> {
        let store = self.store();
        let all = Arc::new(|_: &GroupResource| true);
        let subscription =
            store.follow(all, store.revision()).map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(Log { subscription })
    }

    /// Reads the current state of an object without loading its resource.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read.
    pub async fn get_stored(&self, object: &ObjectRef) -> Result<Option<Stored>> {
        let (store, resource) = (self.store(), Resource::from(object.resource.clone()));
        let key = Key::new(&resource, &object.namespace, &object.name);
        if let Some(snapshot) = store.current(&resource) {
            if let Some(object) = snapshot.unreadable(key.path()) {
                return Err(Box::new(unreadable::of(&resource, object)));
            }
            return Ok(snapshot.get(&key).map(|record| Stored::new(Arc::clone(record))));
        }
        let revision = store.latest_revision().await.map_err(of_read)?;
        store.wait_for(revision).await.map_err(of_read)?;
        let record = store.get_at(&key, revision).await.map_err(of_read)?;
        Ok(record.map(Stored::new))
    }

    /// True if an object that was not found may exist nevertheless, under a damaged key or in a damaged resource.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read, or has not yet determined whether states are missing.
    pub async fn may_be_unreadable(&self, resource: &GroupResource, uid: &str) -> Result<bool> {
        let (store, resource) = (self.store(), Resource::from(resource.clone()));
        if store.condition().incomplete == Incomplete::Unknown {
            return Err(Box::new(Status::unavailable(
                "the database has not been compared with its index yet",
            )));
        }
        if store.why_incomplete(&resource).is_some() {
            return Ok(true);
        }
        let damaged = store.damaged_keys(&resource).await.map_err(of_read)?;
        Ok(damaged.iter().any(|object| object.uid() == uid || object.uid().is_empty()))
    }

    /// Existing objects that have this UID as an owner.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read.
    pub async fn dependents(&self, owner_uid: &str) -> Result<Vec<ObjectRef>> {
        self.store().dependents(owner_uid).await.map(refs).map_err(of_read)
    }

    /// UIDs that existing objects name as owners.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read.
    pub async fn owners(&self) -> Result<Vec<String>> {
        self.store().owners().await.map_err(of_read)
    }

    /// Existing objects that are being deleted.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read.
    pub async fn deleting(&self) -> Result<Vec<ObjectRef>> {
        self.store().deleting().await.map(refs).map_err(of_read)
    }

    /// Resources that have objects in a namespace.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read.
    pub async fn resources_in(&self, namespace: &str) -> Result<Vec<GroupResource>> {
        let resources = self.store().resources_in(namespace).await.map_err(of_read)?;
        Ok(resources.iter().map(|resource: &Resource| GroupResource::clone(resource)).collect())
    }

    /// Number of stored objects of each resource that has any, without internal resources.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read.
    pub async fn object_counts(&self) -> Result<Vec<(GroupResource, u64)>> {
        let counts = self.store().counts().await.map_err(of_read)?;
        let served = counts.into_iter().filter(|(resource, _)| resource.group != INTERNAL);
        Ok(served.map(|(resource, count)| (GroupResource::clone(&resource), count)).collect())
    }

    /// Number and average size of the stored objects of each resource that has any.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read.
    pub async fn stored_objects(&self) -> Result<Vec<(GroupResource, StoredObjects)>> {
        let sizes = self.store().average_sizes().await.map_err(of_read)?;
        let size =
            |of: &GroupResource| sizes.iter().find(|(resource, _)| GroupResource::clone(resource) == *of);
        let counts = self.object_counts().await?.into_iter();
        Ok(counts
            .map(|(resource, count)| {
                let average_bytes = size(&resource).map_or(0, |(_, bytes)| *bytes);
                (resource, StoredObjects { count, average_bytes })
            })
            .collect())
    }

    /// True if a resource has all of these verbs; `None` if it is not served.
    #[must_use]
    pub fn has_verbs(&self, resource: &GroupResource, verbs: &[&str]) -> Option<bool> {
        let served = self.objects().served(resource).ok()?;
        Some(verbs.iter().all(|verb| served.info.has_verb(verb)))
    }

    /// True if a resource is served, namespaced, and has all of these verbs.
    #[must_use]
    pub fn is_namespaced_with(&self, resource: &GroupResource, verbs: &[&str]) -> bool {
        let served = self.objects().served(resource);
        served
            .is_ok_and(|served| served.info.namespaced && verbs.iter().all(|verb| served.info.has_verb(verb)))
    }

    /// Storage resource of a kind; `None` if it is not served. A custom resource is found in every version of its definition,
    /// even in one that is no longer served.
    #[must_use]
    pub fn resolve(&self, kind: &GroupVersionKind) -> Option<Resolved> {
        let resolved = |served: &ServedResource, is_named| Resolved {
            resource: GroupResource::clone(&served.storage),
            namespaced: served.info.namespaced,
            is_named,
        };
        if let Some(served) = self.objects().by_kind(kind) {
            return Some(resolved(&served, true));
        }
        let definition = self.definitions().of_kind(&**self.store(), &kind.group_kind())?;
        let is_named = definition.facts.versions().iter().any(|version| version.name == kind.version);
        let stored = definition.serving.storage().filter(|_| definition.facts.is_reachable())?;
        Some(resolved(stored, is_named))
    }
}

fn refs(keys: Vec<Key>) -> Vec<ObjectRef> {
    keys.iter().map(ObjectRef::of).collect()
}

fn of_read(error: StoreError) -> Box<portico_machinery::Status> {
    failure::of_read(error, 0)
}
