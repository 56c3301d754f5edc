//! Following resources: what controllers and the route compiler use instead of a watch over HTTP.

mod again;
mod together;

use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use futures::stream;
use portico_store::{Event, EventType, Scope, Subscription};

use crate::Result;
use crate::objects::Objects;
use crate::served::ServedResource;
use crate::stored::Stored;
use again::Attempts;
pub use together::FollowedTogether;

/// What a follower learns.
#[derive(Clone, Debug)]
pub enum Change {
    /// An object is there or changed.
    Put(Stored),
    /// An object is gone; this is its last state, at the revision of the deletion.
    Deleted(Stored),
    /// The follower was too slow and missed something: this is everything that there is now, at this revision.
    Relisted(Vec<Stored>, i64),
}

/// Changes in order of revision.
pub type ChangeStream = Pin<Box<dyn Stream<Item = Change> + Send>>;

/// A snapshot and everything after it, without a gap.
pub struct Followed {
    /// What was there, sorted by namespace and name.
    pub initial: Vec<Stored>,
    /// The revision of the snapshot.
    pub revision: i64,
    /// What happened since. Bounded: a slow reader gets one [`Change::Relisted`] instead of what it missed. Ends only
    /// when the store closes.
    pub changes: ChangeStream,
}

/// A reader of the log, and what it takes to begin again.
struct Follower {
    inner: Arc<Objects>,
    scope: Scope,
    subscription: Subscription,
}

impl Objects {
    pub(crate) async fn follow(self: Arc<Self>, served: &ServedResource) -> Result<Followed> {
        let snapshot = self.snapshot(served).await?;
        let scope = Scope::all(&served.storage);
        let subscription = self
            .store
            .watch(scope.clone(), snapshot.revision())
            .map_err(|e| portico_machinery::Status::unavailable(e.to_string()))?;
        let follower = Follower { inner: self, scope, subscription };
        Ok(Followed {
            initial: snapshot.iter().cloned().map(Stored::new).collect(),
            revision: snapshot.revision(),
            changes: Box::pin(stream::unfold(follower, |mut f| async { f.next().await.map(|c| (c, f)) })),
        })
    }
}

impl Objects {
    /// What an event of the store is to a follower.
    fn change(&self, event: &Event) -> Change {
        let stored = self.recent.stored(event.record.clone());
        match event.event_type {
            EventType::Deleted => Change::Deleted(stored),
            EventType::Added | EventType::Modified => Change::Put(stored),
        }
    }
}

impl Follower {
    async fn next(&mut self) -> Option<Change> {
        let Ok(event) = self.subscription.next().await else { return self.relist().await };
        Some(self.inner.change(&event))
    }

    /// Begins again at the newest state, as soon as it can be read; `None` if the store is closed.
    async fn relist(&mut self) -> Option<Change> {
        let mut attempts = Attempts::new();
        loop {
            match self.begin_again().await {
                Ok(change) => return Some(change),
                Err(failure) => attempts.after(&failure, &*self.inner.store).await?,
            }
        }
    }

    async fn begin_again(&mut self) -> std::result::Result<Change, again::Failure> {
        let snapshot = self.inner.store.snapshot(&self.scope.resource).await?;
        self.subscription = self.inner.store.watch(self.scope.clone(), snapshot.revision())?;
        let objects = snapshot.iter().cloned().map(Stored::new).collect();
        Ok(Change::Relisted(objects, snapshot.revision()))
    }
}
