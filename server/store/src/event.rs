//! A committed change, as watchers see it. Made once and shared by all of them.

use std::sync::Arc;

use crate::record::Record;
use crate::unreadable::Unreadable;

/// What happened to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// It did not exist before.
    Added,
    /// It existed before.
    Modified,
    /// It exists no more.
    Deleted,
}

impl EventType {
    /// Of a row that is a tombstone or not, over a state or none.
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
    /// What happened.
    pub event_type: EventType,
    /// The new state; for a deletion the last state at the deletion's revision.
    pub record: Arc<Record>,
    /// The state before, None for [`EventType::Added`]: selectors need it to find what left their view. Its value may be
    /// unreadable ([`crate::Value::is_unreadable`]).
    pub previous: Option<Arc<Record>>,
    /// What another process has written and cannot be read here; the value of `record` is none then. No subscription hands one out.
    pub(crate) unreadable: Option<Arc<Unreadable>>,
    /// Whether the current state in memory held the record, too, when this was made: then it is that one's weight.
    pub(crate) is_held: bool,
}

impl Event {
    /// The revision of the change.
    pub fn revision(&self) -> i64 {
        self.record.revision
    }

    /// The state after, and the state before if there was one.
    pub(crate) fn states(&self) -> impl Iterator<Item = &Record> {
        std::iter::once(&*self.record).chain(self.previous.as_deref())
    }

    /// Whether the state before could not be read.
    pub fn is_of_unreadable(&self) -> bool {
        self.previous.as_ref().is_some_and(|previous| previous.value.is_unreadable())
    }

    /// Whether one of its states could not be read.
    pub(crate) fn is_partly_unreadable(&self) -> bool {
        self.is_of_unreadable() || self.unreadable.is_some()
    }

    /// About how many bytes of memory only this event keeps alive.
    pub(crate) fn weight(&self) -> usize {
        let record = if self.is_held { 0 } else { self.record.weight() };
        size_of::<Self>() + record + self.previous.as_ref().map_or(0, |record| record.weight())
    }
}
