//! Current state of a resource, and lookup of a single object.

use std::sync::Arc;

use crate::key::Key;
use crate::record::Record;
use crate::snapshot::Snapshot;
use crate::unreadable::Unreadable;

/// Current state of a resource.
#[derive(Clone, Debug)]
pub enum CurrentState {
    /// Cached objects.
    Cached(Snapshot),
    /// The cache has no room for the resource: it must be read from the database at this revision.
    Uncached(i64),
}

impl CurrentState {
    /// Returns the revision of the state: the resource version of a list, and a possible start of a watch.
    #[must_use]
    pub fn revision(&self) -> i64 {
        match self {
            Self::Cached(snapshot) => snapshot.revision(),
            Self::Uncached(revision) => *revision,
        }
    }
}

/// Result of looking up one object.
#[derive(Clone, Debug)]
pub struct ObjectLookup {
    /// Revision of the lookup.
    pub revision: i64,
    /// State of the object; `None` if it does not exist.
    pub object: Option<Result<Arc<Record>, Unreadable>>,
}

impl ObjectLookup {
    /// Looks up a key in a snapshot.
    #[must_use]
    pub fn in_snapshot(snapshot: &Snapshot, key: &Key) -> Self {
        let unreadable = || snapshot.unreadable(key.path()).cloned().map(Err);
        Self { revision: snapshot.revision(), object: snapshot.get(key).cloned().map(Ok).or_else(unreadable) }
    }
}
