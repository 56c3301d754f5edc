//! Where the current state of a resource is, and what an object is now.

use std::sync::Arc;

use crate::key::Key;
use crate::record::Record;
use crate::snapshot::Snapshot;
use crate::unreadable::Unreadable;

/// Where the current state of a resource is.
#[derive(Clone, Debug)]
pub enum State {
    /// In memory.
    Held(Snapshot),
    /// In the database alone, since there is no room for it in memory: it is to be read as of this revision.
    Stored(i64),
}

impl State {
    /// At which it is so: what a list of it carries, and what a watch may start from.
    #[must_use]
    pub fn revision(&self) -> i64 {
        match self {
            Self::Held(snapshot) => snapshot.revision(),
            Self::Stored(revision) => *revision,
        }
    }
}

/// What an object is now.
#[derive(Clone, Debug)]
pub struct Found {
    /// At which it is so.
    pub revision: i64,
    /// Nothing where it does not exist.
    pub object: Option<Result<Arc<Record>, Unreadable>>,
}

impl Found {
    /// What a state has of a key.
    #[must_use]
    pub fn in_snapshot(snapshot: &Snapshot, key: &Key) -> Self {
        let unreadable = || snapshot.unreadable(key.path()).cloned().map(Err);
        Self { revision: snapshot.revision(), object: snapshot.get(key).cloned().map(Ok).or_else(unreadable) }
    }
}
