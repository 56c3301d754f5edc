//! Reads of past events, for subscriptions that start in the past.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::selection::Selection;
use crate::error::StoreError;
use crate::event::Event;

/// Source of past events: the part of a store that subscriptions use.
pub(crate) trait History: Send + Sync {
    /// Returns the first events of the selection with revisions in `(after, until]`: at most `limit`, with values of at most
    /// `max_bytes`, but at least one, and all events of a revision or none. May wait for other reads to finish.
    fn events(
        &self,
        selection: Selection,
        after: i64,
        until: i64,
        limit: usize,
        max_bytes: usize,
    ) -> BoxFuture<'_, Result<HistoryPage, StoreError>>;
}

/// Page of past events.
pub(crate) struct HistoryPage {
    /// Events in revision order.
    pub(crate) events: Vec<Arc<Event>>,
    /// True if more events may follow.
    pub(crate) has_more: bool,
}

/// Extent of a page of past events, limited by number and size.
pub(crate) struct PageExtent {
    /// Revision of the last event of the page.
    pub(crate) until: i64,
    /// Number of events.
    pub(crate) events: usize,
    /// True if more events may follow.
    pub(crate) has_more: bool,
    bytes: usize,
}

impl PageExtent {
    /// Creates an empty page after a revision.
    pub(crate) fn new(after: i64) -> Self {
        Self { until: after, events: 0, has_more: false, bytes: 0 }
    }

    /// Adds the next event if it is within the limits. Returns true if it was added.
    pub(crate) fn push(&mut self, revision: i64, length: i64, limit: usize, max_bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(usize::try_from(length).unwrap_or_default());
        if self.events == limit || (self.events > 0 && self.bytes > max_bytes) {
            self.has_more = true;
            return false;
        }
        self.events += 1;
        self.until = revision;
        true
    }
}
