//! Makes a durable group visible: cache, revision, subscriptions, in this order. Used by the writer only.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::cache::Cache;
use crate::event::{Event, EventType};
use crate::hub::Hub;
use crate::key::Resource;
use crate::metrics::Metrics;
use crate::subscription::selection::Batch;

/// Size of the superseded values in the database, in bytes.
#[derive(Debug, Default)]
pub(crate) struct HistoryBytes {
    pub(crate) bytes: AtomicI64,
}

impl HistoryBytes {
    /// Adds the values that a group has superseded.
    fn add_superseded(&self, events: &[Arc<Event>]) {
        let bytes: usize = events.iter().map(|event| superseded_bytes(event)).sum();
        self.bytes.fetch_add(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
    }
}

fn superseded_bytes(event: &Event) -> usize {
    let tombstone =
        if event.event_type == EventType::Deleted { event.record.value.stored_bytes() } else { 0 };
    tombstone + event.previous.as_ref().map_or(0, |previous| previous.value.stored_bytes())
}

/// Publishes groups to the cache, the hub and the metrics.
pub(crate) struct Publisher {
    pub(crate) cache: Arc<Cache>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) history: Arc<HistoryBytes>,
    pub(crate) metrics: Metrics,
}

impl Publisher {
    /// Makes the group visible to readers. Its callers may be answered after this.
    pub(crate) fn publish(&self, events: &Batch, revision: i64) {
        self.cache.apply(events);
        for event in events.iter().filter(|event| event.has_unreadable_state()) {
            self.count_unreadable(event.record.key.resource());
        }
        self.hub.publish(events, revision);
    }

    /// Reports the number of unreadable objects of a resource.
    pub(crate) fn count_unreadable(&self, resource: &Resource) {
        if let Some(count) = self.cache.unreadable_of(resource) {
            self.metrics.unreadable(resource, count);
        }
    }

    /// Advances the revision without an event.
    pub(crate) fn advance(&self, revision: i64) {
        self.cache.set_applied(revision);
        self.hub.advance(revision);
        self.metrics.revision.set(revision);
    }

    /// Passes the group to the subscriptions.
    pub(crate) fn fan_out(&self, events: &Batch, revision: i64) {
        self.hub.fan_out(events, revision);
        self.history.add_superseded(events);
        self.metrics.group_operations.observe(events.len() as f64);
        self.metrics.revision.set(revision);
    }
}
