//! Access to the complete log and to the store's indexes, for controllers that handle every kind.
//!
//! No function in this module loads a resource into memory.

use std::sync::Arc;

use portico_machinery::flow_control::StoredObjects;
use portico_machinery::{GroupResource, GroupVersionKind, Status};
use portico_store::{Event, EventType, Key, MissingStates, Resource, StoreError, Subscription, WatchError};

use crate::Result;
use crate::failure;
use crate::registry::Registry;
use crate::served_resource::ServedResource;
use crate::stored_object::StoredObject;
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
    fn from_key(key: &Key) -> Self {
        Self {
            resource: GroupResource::clone(key.resource()),
            namespace: key.namespace().to_owned(),
            name: key.name().to_owned(),
        }
    }
}

/// Committed change of an object of any kind, decoded only on request.
#[derive(Clone, Debug)]
pub struct LogEntry {
    event: Arc<Event>,
}

impl LogEntry {
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
        ObjectRef::from_key(&self.event.record.key)
    }

    /// True if the object was deleted.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
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
    pub fn previous(&self) -> Option<StoredObject> {
        let previous = self.event.previous.as_ref().filter(|record| !record.value.is_unreadable())?;
        Some(StoredObject::new(Arc::clone(previous)))
    }

    /// Current state; for a deletion the last state.
    #[must_use]
    pub fn stored(&self) -> StoredObject {
        StoredObject::new(Arc::clone(&self.event.record))
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
    pub async fn next(&mut self) -> Result<LogEntry, LogError> {
        Ok(LogEntry { event: self.subscription.next().await? })
    }
}

/// Storage resource and scope of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedKind {
    /// Group and resource under which the objects are stored.
    pub resource: GroupResource,
    /// True if objects have namespaces.
    pub namespaced: bool,
    /// True if the kind has the requested version, served or not.
    pub has_version: bool,
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
    pub async fn get_stored(&self, object: &ObjectRef) -> Result<Option<StoredObject>> {
        let (store, resource) = (self.store(), Resource::from(object.resource.clone()));
        let key = Key::new(&resource, &object.namespace, &object.name);
        if let Some(snapshot) = store.try_snapshot(&resource) {
            if let Some(object) = snapshot.unreadable(key.path()) {
                return Err(Box::new(unreadable::unreadable_status(&resource, object)));
            }
            return Ok(snapshot.get(&key).map(|record| StoredObject::new(Arc::clone(record))));
        }
        let revision = store.latest_revision().await.map_err(store_error)?;
        store.wait_for_revision(revision).await.map_err(store_error)?;
        let record = store.get_at(&key, revision).await.map_err(store_error)?;
        Ok(record.map(StoredObject::new))
    }

    /// True if an object that was not found may exist nevertheless, under a damaged key or in a damaged resource.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read, or has not yet determined whether states are missing.
    pub async fn may_be_unreadable(&self, resource: &GroupResource, uid: &str) -> Result<bool> {
        let (store, resource) = (self.store(), Resource::from(resource.clone()));
        if store.condition().missing_states == MissingStates::Unknown {
            return Err(Box::new(Status::unavailable(
                "the database has not been compared with its index yet",
            )));
        }
        if store.incomplete_reason(&resource).is_some() {
            return Ok(true);
        }
        let damaged = store.damaged_keys(&resource).await.map_err(store_error)?;
        Ok(damaged.iter().any(|object| object.uid() == uid || object.uid().is_empty()))
    }

    /// Existing objects that have this UID as an owner.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read.
    pub async fn dependents(&self, owner_uid: &str) -> Result<Vec<ObjectRef>> {
        self.store().dependents(owner_uid).await.map(refs).map_err(store_error)
    }

    /// UIDs that existing objects name as owners.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read.
    pub async fn owners(&self) -> Result<Vec<String>> {
        self.store().owner_uids().await.map_err(store_error)
    }

    /// Existing objects that are being deleted.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read.
    pub async fn deleting(&self) -> Result<Vec<ObjectRef>> {
        self.store().terminating_keys().await.map(refs).map_err(store_error)
    }

    /// Resources that have objects in a namespace.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read.
    pub async fn resources_in(&self, namespace: &str) -> Result<Vec<GroupResource>> {
        let resources = self.store().resources_in(namespace).await.map_err(store_error)?;
        Ok(resources.iter().map(|resource: &Resource| GroupResource::clone(resource)).collect())
    }

    /// Number of stored objects of each resource that has any, without internal resources.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read.
    pub async fn object_counts(&self) -> Result<Vec<(GroupResource, u64)>> {
        let counts = self.store().object_counts().await.map_err(store_error)?;
        let api_counts = counts.into_iter().filter(|(resource, _)| resource.group != INTERNAL);
        Ok(api_counts.map(|(resource, count)| (GroupResource::clone(&resource), count)).collect())
    }

    /// Number and average size of the stored objects of each resource that has any.
    ///
    /// # Errors
    /// Status 503 if the store cannot be read.
    pub async fn stored_objects(&self) -> Result<Vec<(GroupResource, StoredObjects)>> {
        let sizes = self.store().average_sizes().await.map_err(store_error)?;
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
        let served_resource = self.objects().served_resource(resource).ok()?;
        Some(verbs.iter().all(|verb| served_resource.info.has_verb(verb)))
    }

    /// True if a resource is served, namespaced, and has all of these verbs.
    #[must_use]
    pub fn is_namespaced_with(&self, resource: &GroupResource, verbs: &[&str]) -> bool {
        let served_resource = self.objects().served_resource(resource);
        served_resource.is_ok_and(|served_resource| {
            served_resource.info.namespaced && verbs.iter().all(|verb| served_resource.info.has_verb(verb))
        })
    }

    /// Storage resource of a kind; `None` if it is not served. A custom resource is found in every version of its definition,
    /// even in one that is no longer served.
    #[must_use]
    pub fn resolve(&self, kind: &GroupVersionKind) -> Option<ResolvedKind> {
        let resolved = |served_resource: &ServedResource, has_version| ResolvedKind {
            resource: GroupResource::clone(&served_resource.storage),
            namespaced: served_resource.info.namespaced,
            has_version,
        };
        if let Some(served_resource) = self.objects().by_kind(kind) {
            return Some(resolved(&served_resource, true));
        }
        let definition = self.definitions().of_kind(&**self.store(), &kind.group_kind())?;
        let is_named = definition.facts.versions().iter().any(|version| version.name == kind.version);
        let stored = definition.versions.storage().filter(|_| definition.facts.is_reachable())?;
        Some(resolved(stored, is_named))
    }
}

fn refs(keys: Vec<Key>) -> Vec<ObjectRef> {
    keys.iter().map(ObjectRef::from_key).collect()
}

fn store_error(error: StoreError) -> Box<portico_machinery::Status> {
    failure::from_store_error(error, 0)
}
