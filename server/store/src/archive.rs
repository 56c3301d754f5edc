//! How past states are asked for, and what is found. Knows no SQL.

use std::sync::Arc;

use crate::event::EventType;
use crate::key::Key;
use crate::record::Record;
use crate::unreadable::Unreadable;

/// A question for the states that an object has had.
#[derive(Clone, Debug)]
pub struct PastQuery {
    /// Which object.
    pub key: Key,
    /// Only states older than this revision; none: from the newest on.
    pub before: Option<i64>,
    /// At most so many.
    pub limit: usize,
}

/// A state that an object has or had.
#[derive(Clone, Debug)]
pub struct PastState {
    /// What the write did that made it.
    pub change: EventType,
    /// The state; of a deletion the last one. What cannot be read is named.
    pub state: Result<Arc<Record>, Unreadable>,
    /// When it was written, in Unix seconds, as near as the marks are; none if that is not known any more.
    pub written: Option<i64>,
}

impl PastState {
    /// The revision of the write that made it.
    #[must_use]
    pub fn revision(&self) -> i64 {
        match &self.state {
            Ok(record) => record.revision,
            Err(object) => object.revision(),
        }
    }
}

/// The answer to a [`PastQuery`].
#[derive(Clone, Debug, Default)]
pub struct PastStates {
    /// The newest first.
    pub states: Vec<PastState>,
    /// Whether older ones follow.
    pub more: bool,
    /// From which revision on all states are kept: what was superseded before it is forgotten.
    pub complete_from: i64,
}
