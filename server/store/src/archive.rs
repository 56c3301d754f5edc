//! Queries for past states of an object, and their results. Independent of SQL.

use std::sync::Arc;

use crate::event::EventType;
use crate::key::Key;
use crate::record::Record;
use crate::unreadable::Unreadable;

/// Query for the past states of an object.
#[derive(Clone, Debug)]
pub struct PastQuery {
    /// Key of the object.
    pub key: Key,
    /// Exclusive upper bound of the revisions; `None` to start with the newest state.
    pub before: Option<i64>,
    /// Maximum number of states.
    pub limit: usize,
}

/// Current or past state of an object.
#[derive(Clone, Debug)]
pub struct PastState {
    /// Type of the write that created the state.
    pub change: EventType,
    /// The state; for a deletion, the last one. `Err` names a state that cannot be read.
    pub state: Result<Arc<Record>, Unreadable>,
    /// Time of the write in Unix seconds, with the resolution of the revision marks; `None` if no longer known.
    pub written_at: Option<i64>,
}

impl PastState {
    /// Returns the revision of the write that created the state.
    #[must_use]
    pub fn revision(&self) -> i64 {
        match &self.state {
            Ok(record) => record.revision,
            Err(object) => object.revision(),
        }
    }
}

/// Result of a [`PastQuery`].
#[derive(Clone, Debug, Default)]
pub struct PastStates {
    /// States, newest first.
    pub states: Vec<PastState>,
    /// True if older states follow.
    pub has_more: bool,
    /// Revision from which the result is complete: states that were superseded before it are deleted.
    pub complete_from: i64,
}
