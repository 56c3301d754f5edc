//! Publication of the versioned table: a snapshot, then deltas without gaps.
//!
//! A version is a revision of the store. Events of different resources may arrive slightly out of order, so a change is labeled
//! with the newest revision known at its publication, and a reader that resumes after revision R receives all changes labeled R
//! again. Readers share a bounded history; a reader that is further behind gets a new snapshot.

mod history;
mod subscription;

pub use subscription::TableSubscription;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::entry::{TableEntry, TableEntryKey};
use crate::table::TableChanges;
use history::History;

/// Complete table at a revision, bundles first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSnapshot {
    /// Version of the table.
    pub revision: i64,
    /// Entries, sorted by key.
    pub entries: Vec<(TableEntryKey, TableEntry)>,
}

/// Changes since a version; empty if only the revision advanced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDelta {
    /// Version of the reader after the changes.
    pub revision: i64,
    /// Changes in order of application, one per key; `None` is a tombstone.
    pub changes: TableChanges,
}

/// Next update of a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableUpdate {
    /// Replaces the complete table.
    Snapshot(TableSnapshot),
    /// Applies changes.
    Delta(TableDelta),
}

impl TableUpdate {
    /// Number of entries; 0 if only the revision advanced.
    #[must_use]
    pub fn entries(&self) -> usize {
        match self {
            Self::Snapshot(snapshot) => snapshot.entries.len(),
            Self::Delta(delta) => delta.changes.len(),
        }
    }
}

/// Publisher of the table. Cheap to clone.
#[derive(Clone)]
pub struct Publisher {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    /// Newest sequence number; changes wake subscriptions.
    newest: watch::Sender<u64>,
}

struct State {
    revision: i64,
    /// Version at which the table was first complete in this process.
    complete_since: Option<i64>,
    entries: BTreeMap<TableEntryKey, TableEntry>,
    history: History,
}

impl Publisher {
    /// Creates an empty table with a history of this many changes.
    #[must_use]
    pub fn new(history: usize) -> Self {
        let state = State {
            revision: 0,
            complete_since: None,
            entries: BTreeMap::new(),
            history: History::new(history),
        };
        Self { inner: Arc::new(Inner { state: Mutex::new(state), newest: watch::Sender::new(0) }) }
    }

    /// Publishes changes at this revision, or at the newest known one if that is larger. Without changes,
    /// only the revision advances.
    pub fn publish(&self, revision: i64, changes: TableChanges) {
        let newest = {
            let mut state = self.inner.state.lock();
            if changes.is_empty() && revision <= state.revision {
                return;
            }
            state.revision = state.revision.max(revision);
            for (key, entry) in &changes {
                match entry {
                    Some(entry) => state.entries.insert(key.clone(), entry.clone()),
                    None => state.entries.remove(key),
                };
            }
            let label = state.revision;
            state.history.push(label, changes)
        };
        self.inner.newest.send_replace(newest);
    }

    /// Marks the table as complete. A version up to the current one may be from an earlier process with other routes: a reader
    /// with such a version gets a snapshot.
    pub fn mark_complete(&self) {
        let mut state = self.inner.state.lock();
        state.complete_since = Some(state.revision);
    }

    /// Current version.
    #[must_use]
    pub fn revision(&self) -> i64 {
        self.inner.state.lock().revision
    }

    /// Current table.
    #[must_use]
    pub fn snapshot(&self) -> TableSnapshot {
        self.inner.state.lock().snapshot()
    }

    /// Subscribes a reader that has this version of this store, if any.
    #[must_use]
    pub fn subscribe(&self, after: Option<i64>) -> TableSubscription {
        let state = self.inner.state.lock();
        let resumable = after
            .filter(|revision| state.complete_since.is_some_and(|complete_since| *revision > complete_since));
        let position = resumable.and_then(|revision| state.history.position_of(revision, state.revision));
        TableSubscription::new(self.clone(), position, self.inner.newest.subscribe())
    }

    /// Update for a reader at this position, and its next position; `None` if the reader is current.
    fn read(&self, position: Option<u64>) -> Option<(TableUpdate, u64)> {
        let state = self.inner.state.lock();
        let newest = state.history.newest();
        match position.map(|position| (position, state.history.after(position))) {
            Some((position, _)) if position == newest => None,
            Some((_, Some(changes))) => {
                let delta = TableDelta { revision: state.revision, changes: changes.coalesced() };
                Some((TableUpdate::Delta(delta), newest))
            }
            _ => Some((TableUpdate::Snapshot(state.snapshot()), newest)),
        }
    }
}

impl State {
    fn snapshot(&self) -> TableSnapshot {
        let entries = self.entries.iter().map(|(k, e)| (k.clone(), e.clone())).collect();
        TableSnapshot { revision: self.revision, entries }
    }
}

#[cfg(test)]
mod tests;
