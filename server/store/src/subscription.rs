//! What a watcher holds: history from SQL, then the ring of recent events, then live ones; in order, none missing.
//!
//! It must not know SQL (history comes through [`History`]) nor selectors and forms (registry's).

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use crate::event::Event;
use crate::hub::Hub;
use crate::key::Resource;
use crate::store::{ResourceFilter, Scope, StoreError};

/// Events that became visible together, in revision order.
pub(crate) type Batch = Arc<[Arc<Event>]>;

/// How many events one read of history brings at most.
const MAX_HISTORY_EVENTS: usize = 500;
/// How many bytes they take at most, unless one alone takes more: what each watch that resumes holds at a time.
const MAX_HISTORY_BYTES: usize = 1 << 20;

/// Why a subscription ended, or could not start.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WatchError {
    /// The changes since the wanted revision are no longer kept.
    #[error("too old resource version: {wanted} ({oldest})")]
    Compacted {
        /// The revision asked for.
        wanted: i64,
        /// The oldest revision that a watch may start from.
        oldest: i64,
    },
    /// The subscriber read too slowly: its queue was full and it was cut. It may watch again from `revision`.
    #[error("the watcher is too slow")]
    Lagged {
        /// The last revision that it got.
        revision: i64,
    },
    /// Past changes could not be read.
    #[error(transparent)]
    Store(StoreError),
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

/// Which events a subscription is about.
#[derive(Clone)]
pub(crate) enum Selection {
    Scope(Scope),
    Filter(ResourceFilter),
}

impl Selection {
    pub(crate) fn takes_resource(&self, resource: &Resource) -> bool {
        match self {
            Self::Scope(scope) => scope.resource == *resource,
            Self::Filter(filter) => filter(resource),
        }
    }

    pub(crate) fn takes(&self, event: &Event) -> bool {
        let key = &event.record.key;
        match self {
            Self::Scope(scope) => {
                scope.resource == *key.resource()
                    && scope.namespace.as_deref().is_none_or(|namespace| namespace == key.namespace())
                    && event.states().any(|state| scope.only.may_hold(state))
            }
            Self::Filter(filter) => filter(key.resource()),
        }
    }

    /// The only namespace that it is about.
    pub(crate) fn namespace(&self) -> Option<Arc<str>> {
        match self {
            Self::Scope(scope) => scope.namespace.clone(),
            Self::Filter(_) => None,
        }
    }
}

/// Reads past events: the part of a store that subscriptions need.
pub(crate) trait History: Send + Sync {
    /// The first events that the selection takes with a revision in `(after, until]`: at most `limit`, whose values take at most
    /// `max_bytes`, but at least one. May wait while as many others read as are allowed to.
    fn events(
        &self,
        selection: Selection,
        after: i64,
        until: i64,
        limit: usize,
        max_bytes: usize,
    ) -> BoxFuture<'_, Result<HistoryPage, StoreError>>;
}

/// A part of the past.
pub(crate) struct HistoryPage {
    /// In revision order.
    pub(crate) events: Vec<Arc<Event>>,
    /// Whether more may follow.
    pub(crate) more: bool,
}

/// What waits for one subscription: counted by the sender and the receiver, bounded by the sender.
#[derive(Debug, Default)]
pub(crate) struct Load {
    pub(crate) events: AtomicUsize,
    pub(crate) bytes: AtomicUsize,
    pub(crate) lagged: AtomicBool,
}

/// A running watch. Dropping it ends it.
///
/// Its queue is bounded in events and bytes; when that is full the subscription alone is cut: it gets what is queued, then
/// [`WatchError::Lagged`].
pub struct Subscription {
    pub(crate) id: u64,
    pub(crate) selection: Selection,
    /// The last revision delivered, or the start: events up to here are skipped.
    pub(crate) last: i64,
    /// History in `(.0, .1]` is still to be read from SQL, before `recent` is handed out.
    pub(crate) unread: Option<(i64, i64)>,
    pub(crate) history: Arc<dyn History>,
    /// What the ring held at the start.
    pub(crate) recent: Vec<Batch>,
    pub(crate) pending: VecDeque<Batch>,
    pub(crate) offset: usize,
    pub(crate) receiver: mpsc::Receiver<Batch>,
    pub(crate) load: Arc<Load>,
    pub(crate) hub: Arc<Hub>,
}

impl Subscription {
    /// The next event. Cancel safe: a dropped call loses nothing.
    ///
    /// # Errors
    /// [`WatchError`]; the subscription has ended then.
    pub async fn next(&mut self) -> Result<Arc<Event>, WatchError> {
        loop {
            if let Some(event) = self.take_pending() {
                return Ok(event);
            }
            if let Some((after, until)) = self.unread {
                self.read_history(after, until).await?;
                continue;
            }
            if !self.recent.is_empty() {
                self.pending.extend(std::mem::take(&mut self.recent));
                continue;
            }
            match self.receiver.recv().await {
                Some(batch) => self.received(batch),
                None => return Err(self.ended()),
            }
        }
    }

    /// The next event if it is there already; None when it has to be waited for, or the subscription has ended
    /// ([`Subscription::next`] says how).
    pub fn try_next(&mut self) -> Option<Arc<Event>> {
        loop {
            if let Some(event) = self.take_pending() {
                return Some(event);
            }
            if self.unread.is_some() {
                return None;
            }
            if !self.recent.is_empty() {
                self.pending.extend(std::mem::take(&mut self.recent));
                continue;
            }
            match self.receiver.try_recv() {
                Ok(batch) => self.received(batch),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return None,
            }
        }
    }

    /// A revision up to which every event of this subscription has been handed out: what a bookmark may carry. Never
    /// goes back.
    pub fn progress(&mut self) -> i64 {
        let dispatched = self.hub.dispatched();
        let drained = self.unread.is_none()
            && self.recent.is_empty()
            && self.pending.is_empty()
            && self.receiver.is_empty();
        if drained && !self.load.lagged.load(Ordering::Acquire) {
            self.last = self.last.max(dispatched);
        }
        self.last
    }

    fn take_pending(&mut self) -> Option<Arc<Event>> {
        while let Some(batch) = self.pending.front() {
            for event in &batch[self.offset..] {
                self.offset += 1;
                if event.revision() > self.last && self.selection.takes(event) {
                    self.last = event.revision();
                    return Some(event.clone());
                }
            }
            self.offset = 0;
            self.pending.pop_front();
        }
        None
    }

    fn received(&mut self, batch: Batch) {
        let bytes: usize = batch.iter().map(|event| event.weight()).sum();
        self.load.events.fetch_sub(batch.len(), Ordering::Relaxed);
        self.load.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.pending.push_back(batch);
    }

    async fn read_history(&mut self, after: i64, until: i64) -> Result<(), WatchError> {
        let (events, bytes) = (MAX_HISTORY_EVENTS, MAX_HISTORY_BYTES);
        let page = self.history.events(self.selection.clone(), after, until, events, bytes).await;
        // Rows are deleted only after the compaction point has moved: what was read before is whole.
        let oldest = self.hub.compacted();
        if oldest > after {
            return Err(WatchError::Compacted { wanted: after, oldest });
        }
        let page = page.map_err(WatchError::Store)?;
        let reached = page.events.last().map_or(until, |event| event.revision());
        self.unread = page.more.then_some((reached, until));
        self.pending.push_back(page.events.into());
        Ok(())
    }

    fn ended(&self) -> WatchError {
        if self.load.lagged.load(Ordering::Acquire) {
            WatchError::Lagged { revision: self.last }
        } else {
            WatchError::Closed
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.hub.unsubscribe(self.id, &self.selection);
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").field("id", &self.id).field("last", &self.last).finish_non_exhaustive()
    }
}
