//! Feed of several resources in one order: a reader of a change has already received all earlier changes of all resources.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::stream::{self, BoxStream};
use portico_machinery::GroupResource;
use portico_store::{Event, ResourceFilter, Snapshot, Subscription};

use super::Change;
use super::again::{self, Attempts};
use crate::Result;
use crate::failure;
use crate::objects::Objects;
use crate::served::ServedResource;
use crate::stored::Stored;

/// Snapshots of several resources and all later changes, without a gap and in order of revision. `T` is the caller's
/// label for a resource.
pub struct FollowedTogether<T> {
    /// Objects of each resource, in the order of the request; of this revision or newer.
    pub initial: Vec<(T, Vec<Stored>)>,
    /// Revision up to which no change is missing.
    pub revision: i64,
    /// Changes after the snapshots. Bounded: a slow reader gets a [`Change::Relisted`] of each resource instead of the missed
    /// changes; only the last of them has the new revision. Ends only when the store closes.
    pub changes: BoxStream<'static, (T, Change)>,
}

/// One of the followed resources.
struct Part<T> {
    which: T,
    resource: portico_store::Resource,
    /// Revision of the snapshot, which contains all earlier events.
    shown: i64,
}

/// Reader of the log for several resources, with the resources for restarts.
struct Follower<T> {
    inner: Arc<Objects>,
    parts: Vec<Part<T>>,
    subscription: Subscription,
    /// Revision of the last event.
    at: i64,
    /// Relisted changes that were not returned yet.
    relisted: VecDeque<(T, Change)>,
}

impl Objects {
    pub(crate) async fn follow_together<T: Copy + Send + 'static>(
        self: Arc<Self>,
        resources: Vec<(T, Arc<ServedResource>)>,
    ) -> Result<FollowedTogether<T>> {
        let mut parts: Vec<_> = resources
            .into_iter()
            .map(|(which, served)| Part { which, resource: served.storage.clone(), shown: 0 })
            .collect();
        let (initial, revision) = self.snapshots(&mut parts).await.map_err(|e| failure::of_read(e, 0))?;
        let subscription = self.subscribe(&parts, revision);
        let subscription = subscription.map_err(|e| portico_machinery::Status::unavailable(e.to_string()))?;
        let relisted = VecDeque::new();
        let follower = Follower { inner: self, parts, subscription, at: revision, relisted };
        let changes = stream::unfold(follower, |mut f| async { f.next().await.map(|c| (c, f)) });
        Ok(FollowedTogether { initial, revision, changes: Box::pin(changes) })
    }

    /// Newest state of each resource, and the revision that all of them have reached.
    async fn snapshots<T: Copy>(
        &self,
        parts: &mut [Part<T>],
    ) -> std::result::Result<(Vec<(T, Vec<Stored>)>, i64), portico_store::StoreError> {
        let (mut initial, mut reached) = (Vec::new(), i64::MAX);
        for part in parts {
            let snapshot = self.store.snapshot(&part.resource).await?;
            part.shown = snapshot.revision();
            reached = reached.min(part.shown);
            initial.push((part.which, stored(&snapshot)));
        }
        Ok((initial, reached))
    }

    fn subscribe<T>(
        &self,
        parts: &[Part<T>],
        from: i64,
    ) -> std::result::Result<Subscription, portico_store::WatchError> {
        let followed: Vec<_> = parts.iter().map(|part| part.resource.clone()).collect();
        let filter: ResourceFilter =
            Arc::new(move |one: &GroupResource| followed.iter().any(|followed| **followed == *one));
        self.store.follow(filter, from)
    }
}

fn stored(snapshot: &Snapshot) -> Vec<Stored> {
    snapshot.iter().cloned().map(Stored::new).collect()
}

impl<T: Copy> Follower<T> {
    async fn next(&mut self) -> Option<(T, Change)> {
        loop {
            if let Some(relisted) = self.relisted.pop_front() {
                return Some(relisted);
            }
            match self.subscription.next().await {
                Ok(event) => {
                    if let Some(change) = self.take(&event) {
                        return Some(change);
                    }
                }
                Err(_) => self.relist().await?,
            }
        }
    }

    /// Converts an event to a change; `None` if the snapshot already contains it.
    fn take(&mut self, event: &Event) -> Option<(T, Change)> {
        self.at = event.revision().max(self.at);
        let resource = event.record.key.resource();
        let part = self.parts.iter().find(|part| part.resource == *resource)?;
        (event.revision() > part.shown).then(|| (part.which, self.inner.change(event)))
    }

    /// Restarts at the newest state as soon as it can be read; `None` if the store is closed.
    async fn relist(&mut self) -> Option<()> {
        let mut attempts = Attempts::new();
        loop {
            match self.begin_again().await {
                Ok(()) => return Some(()),
                Err(failure) => attempts.after(&failure, &*self.inner.store).await?,
            }
        }
    }

    async fn begin_again(&mut self) -> std::result::Result<(), again::Failure> {
        let (all, reached) = self.inner.snapshots(&mut self.parts).await?;
        self.subscription = self.inner.subscribe(&self.parts, reached)?;
        let before = std::mem::replace(&mut self.at, reached);
        let last = all.len().saturating_sub(1);
        let revision = |index| if index == last { reached } else { before };
        let relisted = all.into_iter().enumerate();
        self.relisted
            .extend(relisted.map(|(index, (which, all))| (which, Change::Relisted(all, revision(index)))));
        Ok(())
    }
}
