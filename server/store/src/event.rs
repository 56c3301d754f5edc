//! Committed changes as watchers receive them. Created once and shared by all watchers.

use std::sync::Arc;

use crate::record::Record;
use crate::unreadable::Unreadable;

/// Type of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// The object was created.
    Added,
    /// The object existed before.
    Modified,
    /// The object was deleted.
    Deleted,
}

impl EventType {
    /// Returns the type of a row that is or is not a tombstone, and that did or did not supersede a state.
    pub(crate) fn of(is_tombstone: bool, supersedes: bool) -> Self {
        match (is_tombstone, supersedes) {
            (true, _) => Self::Deleted,
            (false, true) => Self::Modified,
            (false, false) => Self::Added,
        }
    }
}

/// One committed change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Type of the change.
    pub event_type: EventType,
    /// New state; for a deletion, the last state with the revision of the deletion.
    pub record: Arc<Record>,
    /// Previous state, `None` for [`EventType::Added`]. Selectors use it to detect objects that no longer match. Its value may
    /// be unreadable ([`crate::Value::is_unreadable`]).
    pub previous: Option<Arc<Record>>,
    /// State that another process wrote and this process cannot read; `record` then has no value. Subscriptions never deliver it.
    pub(crate) unreadable: Option<Arc<Unreadable>>,
    /// True if the cache also held `record` when the event was created: its memory then counts for the cache.
    pub(crate) is_record_cached: bool,
}

impl Event {
    /// Returns the revision of the change.
    pub fn revision(&self) -> i64 {
        self.record.revision
    }

    /// Iterates over the new state and the previous state, if any.
    pub(crate) fn states(&self) -> impl Iterator<Item = &Record> {
        std::iter::once(&*self.record).chain(self.previous.as_deref())
    }

    /// True if the previous state could not be read.
    pub fn has_unreadable_previous(&self) -> bool {
        self.previous.as_ref().is_some_and(|previous| previous.value.is_unreadable())
    }

    /// True if one of the states could not be read.
    pub(crate) fn has_unreadable_state(&self) -> bool {
        self.has_unreadable_previous() || self.unreadable.is_some()
    }

    /// Returns the approximate memory in bytes that only this event keeps alive.
    pub(crate) fn weight(&self) -> usize {
        let record = if self.is_record_cached { 0 } else { self.record.weight() };
        size_of::<Self>() + record + self.previous.as_ref().map_or(0, |record| record.weight())
    }
}
