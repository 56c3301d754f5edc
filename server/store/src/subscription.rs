//! Subscriptions: deliver history from SQL, then the ring of recent events, then live events; in order and without gaps.
//!
//! Independent of SQL (history comes through [`History`]), and of selectors and representations, which the registry handles.

pub(crate) mod history;
pub(crate) mod queue_load;
pub(crate) mod selection;
pub(crate) mod watch_error;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use crate::error::StoreError;
use crate::event::Event;
use crate::hub::{Hub, Registration};
use crate::unreadable::Unreadable;
use history::History;
use queue_load::QueueLoad;
use selection::{Batch, Selection};
pub use watch_error::WatchError;

/// Past events that are read for one watch at a time.
///
/// Limit (Storage and watches): the next ones are read after these are sent.
const MAX_HISTORY_EVENTS: usize = 500;
/// Bytes of past events that are read for one watch at a time, unless one event is larger.
///
/// Limit (Storage and watches, bytes): the next ones are read after these are sent.
const MAX_HISTORY_BYTES: usize = 1 << 20;

/// Running watch. Dropping it ends the watch.
///
/// Its queue has limits for events and bytes. When a limit is exceeded, only this subscription is cut: it delivers the queued
/// events, then [`WatchError::Lagged`].
pub struct Subscription {
    id: u64,
    selection: Selection,
    /// Last revision delivered, or the start.
    last: i64,
    /// Value of `last` before the current batch, which skips events up to here: several events of a batch may
    /// have the same revision.
    last_before_batch: i64,
    /// History in `(.0, .1]` that is still to be read from SQL, before the events in `recent`.
    unread_history: Option<(i64, i64)>,
    history: Arc<dyn History>,
    /// Content of the ring at the start.
    recent: Vec<Batch>,
    pending: VecDeque<Batch>,
    offset: usize,
    receiver: mpsc::Receiver<Batch>,
    load: Arc<QueueLoad>,
    hub: Arc<Hub>,
    /// Next event, if it cannot be read.
    unreadable: Option<Arc<Unreadable>>,
}

impl Subscription {
    /// Starts a subscription after revision `from`.
    pub(crate) fn start(
        hub: &Arc<Hub>,
        selection: Selection,
        from: i64,
        history: Arc<dyn History>,
    ) -> Result<Self, WatchError> {
        let Registration { id, receiver, load, floor, recent } = hub.join(selection.clone(), from)?;
        let subscription = Self {
            id,
            selection,
            last: from,
            last_before_batch: from,
            unread_history: (from < floor).then_some((from, floor)),
            history,
            recent,
            pending: VecDeque::new(),
            offset: 0,
            receiver,
            load,
            hub: hub.clone(),
            unreadable: None,
        };
        // From here on, dropping the subscription unregisters it.
        let oldest = hub.oldest_watchable(from, floor);
        if from < oldest {
            return Err(WatchError::Compacted { wanted: from, oldest });
        }
        Ok(subscription)
    }

    /// Returns the next event. Cancel safe: a dropped call loses nothing.
    ///
    /// # Errors
    /// [`WatchError`]; the subscription has then ended.
    pub async fn next(&mut self) -> Result<Arc<Event>, WatchError> {
        loop {
            if let Some(event) = self.take_pending() {
                return Ok(event);
            }
            if let Some(object) = &self.unreadable {
                return Err(WatchError::Store(StoreError::corrupt(object)));
            }
            if let Some((after, until)) = self.unread_history {
                self.read_history(after, until).await?;
                continue;
            }
            if !self.recent.is_empty() {
                self.pending.extend(std::mem::take(&mut self.recent));
                continue;
            }
            match self.receiver.recv().await {
                Some(batch) => self.push_batch(batch),
                None => return Err(self.end_error()),
            }
        }
    }

    /// Returns the next event if it is available; `None` if it is not, or if the subscription has ended
    /// ([`Subscription::next`] returns the reason).
    pub fn try_next(&mut self) -> Option<Arc<Event>> {
        loop {
            if let Some(event) = self.take_pending() {
                return Some(event);
            }
            if self.unreadable.is_some() || self.unread_history.is_some() {
                return None;
            }
            if !self.recent.is_empty() {
                self.pending.extend(std::mem::take(&mut self.recent));
                continue;
            }
            match self.receiver.try_recv() {
                Ok(batch) => self.push_batch(batch),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return None,
            }
        }
    }

    /// Returns a revision up to which every event of this subscription was delivered, for bookmarks. Never decreases.
    pub fn progress(&mut self) -> i64 {
        let dispatched = self.hub.fan_out_revision();
        let drained = self.unread_history.is_none()
            && self.recent.is_empty()
            && self.pending.is_empty()
            && self.receiver.is_empty();
        let is_cut = self.load.lagged.load(Ordering::Acquire) || self.load.expired.load(Ordering::Acquire);
        if drained && !is_cut {
            self.last = self.last.max(dispatched);
        }
        self.last
    }

    /// True if more events with the revision of the last event are available.
    pub fn is_within_revision(&self) -> bool {
        let Some(batch) = self.pending.front() else { return false };
        let remaining = batch.get(self.offset..).unwrap_or_default();
        let mut events = remaining.iter().take_while(|event| event.revision() == self.last);
        events.any(|event| self.selection.selects(event))
    }

    fn take_pending(&mut self) -> Option<Arc<Event>> {
        while let Some(batch) = self.pending.front() {
            if self.offset == 0 {
                self.last_before_batch = self.last;
            }
            for event in &batch[self.offset..] {
                let is_next = event.revision() > self.last_before_batch && self.selection.selects(event);
                if is_next && event.unreadable.is_some() {
                    self.unreadable.clone_from(&event.unreadable);
                    return None;
                }
                self.offset += 1;
                if is_next {
                    self.last = event.revision();
                    return Some(event.clone());
                }
            }
            self.offset = 0;
            self.pending.pop_front();
        }
        None
    }

    fn push_batch(&mut self, batch: Batch) {
        let bytes: usize = batch.iter().map(|event| event.weight()).sum();
        self.load.events.fetch_sub(batch.len(), Ordering::Relaxed);
        self.load.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.pending.push_back(batch);
    }

    async fn read_history(&mut self, after: i64, until: i64) -> Result<(), WatchError> {
        let (events, bytes) = (MAX_HISTORY_EVENTS, MAX_HISTORY_BYTES);
        let page = self.history.events(self.selection.clone(), after, until, events, bytes).await;
        // Rows are deleted only after the compaction point has moved, so data that was read before is complete.
        let oldest = self.hub.compacted();
        if oldest > after {
            return Err(WatchError::Compacted { wanted: after, oldest });
        }
        let page = page.map_err(|error| match error {
            // Another process has compacted the revision.
            StoreError::Compacted { oldest } => WatchError::Compacted { wanted: after, oldest },
            error => WatchError::Store(error),
        })?;
        let last_revision = page.events.last().map_or(until, |event| event.revision());
        self.unread_history = page.has_more.then_some((last_revision, until));
        self.pending.push_back(page.events.into());
        Ok(())
    }

    fn end_error(&self) -> WatchError {
        if self.load.lagged.load(Ordering::Acquire) {
            WatchError::Lagged { revision: self.last }
        } else if self.load.expired.load(Ordering::Acquire) {
            WatchError::Compacted { wanted: self.last, oldest: self.hub.revision() }
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

#[cfg(test)]
mod tests;
