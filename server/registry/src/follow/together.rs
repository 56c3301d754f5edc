//! Several resources followed in one order: whoever has seen a change has seen every change that was made before it,
//! whichever resource it was made to.

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

/// Snapshots of several resources and everything after them, without a gap and in order of revision. `T` is the caller's
/// word for a resource.
pub struct FollowedTogether<T> {
    /// What was there of each resource, in the order in which they were asked for; of this revision or newer.
    pub initial: Vec<(T, Vec<Stored>)>,
    /// The revision up to which nothing is missing.
    pub revision: i64,
    /// What happened since. Bounded: a slow reader gets a [`Change::Relisted`] of each resource instead of what it missed;
    /// only the last of them carries the new revision. Ends only when the store closes.
    pub changes: BoxStream<'static, (T, Change)>,
}

/// One of the resources that are followed.
struct Part<T> {
    which: T,
    resource: portico_store::Resource,
    /// Older events are in the snapshot.
    shown: i64,
}

/// A reader of the log, and what it takes to begin again.
struct Follower<T> {
    inner: Arc<Objects>,
    parts: Vec<Part<T>>,
    subscription: Subscription,
    /// The revision that the reader has got to.
    at: i64,
    /// Relisted, and not handed on yet.
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

    /// The newest state of each resource, and the revision that all of them have reached.
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

    /// Nothing for what the snapshot has shown already.
    fn take(&mut self, event: &Event) -> Option<(T, Change)> {
        self.at = event.revision().max(self.at);
        let resource = event.record.key.resource();
        let part = self.parts.iter().find(|part| part.resource == *resource)?;
        (event.revision() > part.shown).then(|| (part.which, self.inner.change(event)))
    }

    /// Begins again at the newest state, as soon as it can be read; `None` if the store is closed.
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
