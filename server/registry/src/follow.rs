//! Snapshots of resources followed by their changes, for controllers and the route compiler.

mod combined;
mod restart;

use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use futures::stream;
use portico_store::{Event, EventType, Scope, Subscription};

use crate::Result;
use crate::objects::Objects;
use crate::served_resource::ServedResource;
use crate::stored_object::StoredObject;
pub use combined::CombinedFeed;
use restart::RestartAttempts;

/// Change of a resource, as seen by a follower.
#[derive(Clone, Debug)]
pub enum Change {
    /// An object was created or changed.
    Put(StoredObject),
    /// An object was deleted; contains its last state at the revision of the deletion.
    Deleted(StoredObject),
    /// The follower was too slow and missed changes: contains all current objects, and their revision.
    Relisted(Vec<StoredObject>, i64),
}

/// Changes in order of revision.
pub type ChangeStream = Pin<Box<dyn Stream<Item = Change> + Send>>;

/// Snapshot of a resource and all later changes, without a gap.
pub struct ResourceFeed {
    /// Objects of the snapshot, sorted by namespace and name.
    pub initial: Vec<StoredObject>,
    /// Revision of the snapshot.
    pub revision: i64,
    /// Changes after the snapshot. Bounded: a slow reader gets one [`Change::Relisted`] instead of the missed changes. Ends only
    /// when the store closes.
    pub changes: ChangeStream,
}

/// Reader of the log for one resource, with the scope for restarts.
struct Follower {
    objects: Arc<Objects>,
    scope: Scope,
    subscription: Subscription,
}

impl Objects {
    pub(crate) async fn follow(self: Arc<Self>, served_resource: &ServedResource) -> Result<ResourceFeed> {
        let snapshot = self.snapshot(served_resource).await?;
        let scope = Scope::all(&served_resource.storage);
        let subscription = self
            .store
            .watch(scope.clone(), snapshot.revision())
            .map_err(|e| portico_machinery::Status::unavailable(e.to_string()))?;
        let follower = Follower { objects: self, scope, subscription };
        Ok(ResourceFeed {
            initial: snapshot.iter().cloned().map(StoredObject::new).collect(),
            revision: snapshot.revision(),
            changes: Box::pin(stream::unfold(follower, |mut f| async { f.next().await.map(|c| (c, f)) })),
        })
    }
}

impl Objects {
    /// Converts a store event to a change.
    fn change(&self, event: &Event) -> Change {
        let stored = self.recent.get_or_insert(event.record.clone());
        match event.event_type {
            EventType::Deleted => Change::Deleted(stored),
            EventType::Added | EventType::Modified => Change::Put(stored),
        }
    }
}

impl Follower {
    async fn next(&mut self) -> Option<Change> {
        let Ok(event) = self.subscription.next().await else { return self.relist().await };
        Some(self.objects.change(&event))
    }

    /// Restarts at the newest state as soon as it can be read; `None` if the store is closed.
    async fn relist(&mut self) -> Option<Change> {
        let mut attempts = RestartAttempts::new();
        loop {
            match self.restart().await {
                Ok(change) => return Some(change),
                Err(failure) => attempts.wait_after(&failure, &*self.objects.store).await?,
            }
        }
    }

    async fn restart(&mut self) -> std::result::Result<Change, restart::RestartFailure> {
        let snapshot = self.objects.store.snapshot(&self.scope.resource).await?;
        self.subscription = self.objects.store.watch(self.scope.clone(), snapshot.revision())?;
        let objects = snapshot.iter().cloned().map(StoredObject::new).collect();
        Ok(Change::Relisted(objects, snapshot.revision()))
    }
}
