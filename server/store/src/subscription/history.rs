//! Past events, for subscriptions that begin in the past.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::selection::Selection;
use crate::error::StoreError;
use crate::event::Event;

/// Reads past events: the part of a store that subscriptions need.
pub(crate) trait History: Send + Sync {
    /// The first events that the selection takes with a revision in `(after, until]`: at most `limit`, whose values take at most
    /// `max_bytes`, but at least one; those of one revision all or none. May wait while as many others read as are allowed to.
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

/// How far a part of the past goes, by the lengths of its values.
pub(crate) struct Extent {
    /// The last event of the part.
    pub(crate) until: i64,
    /// How many there are.
    pub(crate) events: usize,
    /// Whether more may follow.
    pub(crate) more: bool,
    bytes: usize,
}

impl Extent {
    /// Nothing yet.
    pub(crate) fn new(after: i64) -> Self {
        Self { until: after, events: 0, more: false, bytes: 0 }
    }

    /// Takes the next event, unless it is beyond one of the bounds; whether it did.
    pub(crate) fn take(&mut self, revision: i64, length: i64, limit: usize, max_bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(usize::try_from(length).unwrap_or_default());
        if self.events == limit || (self.events > 0 && self.bytes > max_bytes) {
            self.more = true;
            return false;
        }
        self.events += 1;
        self.until = revision;
        true
    }
}
