//! Past events, for subscriptions that begin in the past.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::selection::Selection;
use crate::error::StoreError;
use crate::event::Event;

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
