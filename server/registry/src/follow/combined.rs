//! Feed of several resources in one order: a reader of a change has already received all earlier changes of all resources.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::stream::{self, BoxStream};
use portico_machinery::GroupResource;
use portico_store::{Event, ResourceFilter, Snapshot, Subscription};

use super::Change;
use super::restart::{self, RestartAttempts};
use crate::Result;
use crate::failure;
use crate::objects::Objects;
use crate::served_resource::ServedResource;
use crate::stored_object::StoredObject;

/// Snapshots of several resources and all later changes, without a gap and in order of revision. `T` is the caller's
/// label for a resource.
pub struct CombinedFeed<T> {
    /// Objects of each resource, in the order of the request; of this revision or newer.
    pub initial: Vec<(T, Vec<StoredObject>)>,
    /// Revision up to which no change is missing.
    pub revision: i64,
    /// Changes after the snapshots. Bounded: a slow reader gets a [`Change::Relisted`] of each resource instead of the missed
    /// changes; only the last of them has the new revision. Ends only when the store closes.
    pub changes: BoxStream<'static, (T, Change)>,
}

/// One of the followed resources.
struct FollowedResource<T> {
    label: T,
    resource: portico_store::Resource,
    /// Revision of the snapshot, which contains all earlier events.
    snapshot_revision: i64,
}

/// Reader of the log for several resources, with the resources for restarts.
struct Follower<T> {
    objects: Arc<Objects>,
    resources: Vec<FollowedResource<T>>,
    subscription: Subscription,
    /// Revision of the last event.
    revision: i64,
    /// Relisted changes that were not returned yet.
    relisted: VecDeque<(T, Change)>,
}

impl Objects {
    pub(crate) async fn follow_together<T: Copy + Send + 'static>(
        self: Arc<Self>,
        resources: Vec<(T, Arc<ServedResource>)>,
    ) -> Result<CombinedFeed<T>> {
        let mut parts: Vec<_> = resources
            .into_iter()
            .map(|(label, served_resource)| FollowedResource {
                label,
                resource: served_resource.storage.clone(),
                snapshot_revision: 0,
            })
            .collect();
        let (initial, revision) =
            self.snapshots(&mut parts).await.map_err(|e| failure::from_store_error(e, 0))?;
        let subscription = self.subscribe(&parts, revision);
        let subscription = subscription.map_err(|e| portico_machinery::Status::unavailable(e.to_string()))?;
        let relisted = VecDeque::new();
        let follower = Follower { objects: self, resources: parts, subscription, revision, relisted };
        let changes = stream::unfold(follower, |mut f| async { f.next().await.map(|c| (c, f)) });
        Ok(CombinedFeed { initial, revision, changes: Box::pin(changes) })
    }

    /// Newest state of each resource, and the revision that all of them have reached.
    async fn snapshots<T: Copy>(
        &self,
        parts: &mut [FollowedResource<T>],
    ) -> std::result::Result<(Vec<(T, Vec<StoredObject>)>, i64), portico_store::StoreError> {
        let (mut initial, mut common_revision) = (Vec::new(), i64::MAX);
        for part in parts {
            let snapshot = self.store.snapshot(&part.resource).await?;
            part.snapshot_revision = snapshot.revision();
            common_revision = common_revision.min(part.snapshot_revision);
            initial.push((part.label, stored_objects(&snapshot)));
        }
        Ok((initial, common_revision))
    }

    fn subscribe<T>(
        &self,
        parts: &[FollowedResource<T>],
        from: i64,
    ) -> std::result::Result<Subscription, portico_store::WatchError> {
        let followed: Vec<_> = parts.iter().map(|part| part.resource.clone()).collect();
        let filter: ResourceFilter =
            Arc::new(move |one: &GroupResource| followed.iter().any(|followed| **followed == *one));
        self.store.follow(filter, from)
    }
}

fn stored_objects(snapshot: &Snapshot) -> Vec<StoredObject> {
    snapshot.iter().cloned().map(StoredObject::new).collect()
}

impl<T: Copy> Follower<T> {
    async fn next(&mut self) -> Option<(T, Change)> {
        loop {
            if let Some(relisted) = self.relisted.pop_front() {
                return Some(relisted);
            }
            match self.subscription.next().await {
                Ok(event) => {
                    if let Some(change) = self.change_of(&event) {
                        return Some(change);
                    }
                }
                Err(_) => self.relist().await?,
            }
        }
    }

    /// Converts an event to a change; `None` if the snapshot already contains it.
    fn change_of(&mut self, event: &Event) -> Option<(T, Change)> {
        self.revision = event.revision().max(self.revision);
        let resource = event.record.key.resource();
        let part = self.resources.iter().find(|part| part.resource == *resource)?;
        (event.revision() > part.snapshot_revision).then(|| (part.label, self.objects.change(event)))
    }

    /// Restarts at the newest state as soon as it can be read; `None` if the store is closed.
    async fn relist(&mut self) -> Option<()> {
        let mut attempts = RestartAttempts::new();
        loop {
            match self.restart().await {
                Ok(()) => return Some(()),
                Err(failure) => attempts.wait_after(&failure, &*self.objects.store).await?,
            }
        }
    }

    async fn restart(&mut self) -> std::result::Result<(), restart::RestartFailure> {
        let (all, common_revision) = self.objects.snapshots(&mut self.resources).await?;
        self.subscription = self.objects.subscribe(&self.resources, common_revision)?;
        let before = std::mem::replace(&mut self.revision, common_revision);
        let last = all.len().saturating_sub(1);
        let revision = |index| if index == last { common_revision } else { before };
        let relisted = all.into_iter().enumerate();
        self.relisted
            .extend(relisted.map(|(index, (label, all))| (label, Change::Relisted(all, revision(index)))));
        Ok(())
    }
}
