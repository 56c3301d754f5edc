//! The whole log, and what the store's indexes know, for controllers that concern every kind.
//!
//! Nothing here loads a resource into memory.

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

/// The group of records that nobody serves.
const INTERNAL: &str = "portico.dev";

/// Where an object lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectRef {
    /// Its storage group and resource.
    pub resource: GroupResource,
    /// Its namespace, empty at cluster scope.
    pub namespace: String,
    /// Its name.
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

/// A committed change of any kind: cheap to look at, decoded only when asked to.
#[derive(Clone, Debug)]
pub struct Logged {
    event: Arc<Event>,
}

impl Logged {
    /// The storage resource.
    #[must_use]
    pub fn resource(&self) -> &GroupResource {
        self.event.record.key.resource()
    }

    /// The namespace, empty at cluster scope.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.event.record.key.namespace()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.event.record.key.name()
    }

    /// Where it lies.
    #[must_use]
    pub fn object(&self) -> ObjectRef {
        ObjectRef::of(&self.event.record.key)
    }

    /// Whether it is gone.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.event.event_type == EventType::Deleted
    }

    /// Its uid.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.event.record.value.uid()
    }

    /// The uids of its owners; of what is gone, those it had.
    #[must_use]
    pub fn owners(&self) -> &[Box<str>] {
        self.event.record.value.owners()
    }

    /// The uids of its owners before.
    #[must_use]
    pub fn owners_before(&self) -> &[Box<str>] {
        self.event.previous.as_ref().map_or(&[], |record| record.value.owners())
    }

    /// A selectable field, without decoding anything; nothing when the kind has no such field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.event.record.value.field(name)
    }

    /// The state before; nothing of what is new, and of what could not be read.
    #[must_use]
    pub fn before(&self) -> Option<Stored> {
        let previous = self.event.previous.as_ref().filter(|record| !record.value.is_unreadable())?;
        Some(Stored::new(Arc::clone(previous)))
    }

    /// Its state; the last one of what is gone.
    #[must_use]
    pub fn stored(&self) -> Stored {
        Stored::new(Arc::clone(&self.event.record))
    }
}

/// The log from a revision on.
pub struct Log {
    subscription: Subscription,
}

/// The reader was too slow, or the store closed: what was missed has to be looked for in the indexes.
#[derive(Clone, Debug, thiserror::Error)]
#[error(transparent)]
pub struct LogError(#[from] WatchError);

impl Log {
    /// The next change, in order of revision.
    ///
    /// # Errors
    /// [`LogError`]; the log ends with it.
    pub async fn next(&mut self) -> Result<Logged, LogError> {
        Ok(Logged { event: self.subscription.next().await? })
    }
}

/// What a kind is to somebody who only knows its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The group and resource that its objects are stored under.
    pub resource: GroupResource,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether the kind has the version that was named, served or not.
    pub is_named: bool,
}

impl Registry {
    /// Everything that is committed after now.
    ///
    /// # Errors
    /// 503 when the store is closed.
    pub fn log(&self) -> Result<Log> {
        let store = self.store();
        let all = Arc::new(|_: &GroupResource| true);
        let subscription =
            store.follow(all, store.revision()).map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(Log { subscription })
    }

    /// An object as it is now, without loading the others of its resource.
    ///
    /// # Errors
    /// 503 when the store cannot be read.
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

    /// Whether an object that was not found may be there all the same, under a key or a resource whose bytes are damaged.
    ///
    /// # Errors
    /// 503 when the store cannot be read, or has not determined yet whether states are missing.
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

    /// The existing objects that name this uid as an owner.
    ///
    /// # Errors
    /// 503 when the store cannot be read.
    pub async fn dependents(&self, owner_uid: &str) -> Result<Vec<ObjectRef>> {
        self.store().dependents(owner_uid).await.map(refs).map_err(of_read)
    }

    /// The uids that existing objects name as owners.
    ///
    /// # Errors
    /// 503 when the store cannot be read.
    pub async fn owners(&self) -> Result<Vec<String>> {
        self.store().owners().await.map_err(of_read)
    }

    /// The objects that are being deleted and still there.
    ///
    /// # Errors
    /// 503 when the store cannot be read.
    pub async fn deleting(&self) -> Result<Vec<ObjectRef>> {
        self.store().deleting().await.map(refs).map_err(of_read)
    }

    /// The resources that have objects in a namespace.
    ///
    /// # Errors
    /// 503 when the store cannot be read.
    pub async fn resources_in(&self, namespace: &str) -> Result<Vec<GroupResource>> {
        let resources = self.store().resources_in(namespace).await.map_err(of_read)?;
        Ok(resources.iter().map(|resource: &Resource| GroupResource::clone(resource)).collect())
    }

    /// How many objects are stored of each resource that has any; what nobody serves is left out.
    ///
    /// # Errors
    /// 503 when the store cannot be read.
    pub async fn object_counts(&self) -> Result<Vec<(GroupResource, u64)>> {
        let counts = self.store().counts().await.map_err(of_read)?;
        let served = counts.into_iter().filter(|(resource, _)| resource.group != INTERNAL);
        Ok(served.map(|(resource, count)| (GroupResource::clone(&resource), count)).collect())
    }

    /// How many objects are stored of each resource that has any, and how large they are.
    ///
    /// # Errors
    /// 503 when the store cannot be read.
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

    /// Whether a resource has all of these verbs; nothing when it is not served here.
    #[must_use]
    pub fn has_verbs(&self, resource: &GroupResource, verbs: &[&str]) -> Option<bool> {
        let served = self.objects().served(resource).ok()?;
        Some(verbs.iter().all(|verb| served.info.has_verb(verb)))
    }

    /// Whether objects of a resource live in namespaces and have all of these verbs; not when it is not served here.
    #[must_use]
    pub fn is_namespaced_with(&self, resource: &GroupResource, verbs: &[&str]) -> bool {
        let served = self.objects().served(resource);
        served
            .is_ok_and(|served| served.info.namespaced && verbs.iter().all(|verb| served.info.has_verb(verb)))
    }

    /// What a kind is stored as; nothing when it is not served here. Custom resources are found in whatever version they
    /// are named: also in one that is not served any more.
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
