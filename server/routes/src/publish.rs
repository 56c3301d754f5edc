//! The versioned table as readers get it: a snapshot, then deltas, never a gap.
//!
//! A version is a revision of the store. Events of several resources may arrive a little out of order, so a change is
//! labelled with the newest revision seen when it was published, and resuming after R repeats what was labelled R.
//! Readers share one bounded history: one that is farther behind than that gets a new snapshot.

mod history;
mod subscription;

pub use subscription::Subscription;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::entry::{Entry, EntryKey};
use crate::table::Changes;
use history::History;

/// Everything that there is at a revision, bundles first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The version.
    pub revision: i64,
    /// Sorted by key.
    pub entries: Vec<(EntryKey, Entry)>,
}

/// What changed since a version. Empty when only the revision moved on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// The version that the reader has afterwards.
    pub revision: i64,
    /// In order of application, one per key; `None` is a tombstone.
    pub changes: Changes,
}

/// What a reader gets next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// Forget everything; this is all.
    Snapshot(Snapshot),
    /// Apply this.
    Delta(Delta),
}

impl Update {
    /// How many entries it carries; 0 when only revisions have passed.
    #[must_use]
    pub fn entries(&self) -> usize {
        match self {
            Self::Snapshot(snapshot) => snapshot.entries.len(),
            Self::Delta(delta) => delta.changes.len(),
        }
    }
}

/// Hands the table to readers. Cheap to clone.
#[derive(Clone)]
pub struct Publisher {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    /// The newest sequence number: wakes subscriptions.
    newest: watch::Sender<u64>,
}

struct State {
    revision: i64,
    /// The version at which the table was whole for the first time in this process.
    whole_at: Option<i64>,
    entries: BTreeMap<EntryKey, Entry>,
    history: History,
}

impl Publisher {
    /// An empty table that remembers so many changes.
    #[must_use]
    pub fn new(history: usize) -> Self {
        let state =
            State { revision: 0, whole_at: None, entries: BTreeMap::new(), history: History::new(history) };
        Self { inner: Arc::new(Inner { state: Mutex::new(state), newest: watch::Sender::new(0) }) }
    }

    /// Publishes changes that hold at this revision (or the newest seen, whichever is larger). Without changes it only
    /// says that the revision has passed.
    pub fn publish(&self, revision: i64, changes: Changes) {
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

    /// From here on the table is whole. A version up to now may come from an earlier process, which knew other
    /// routes: such a reader gets a snapshot.
    pub fn complete(&self) {
        let mut state = self.inner.state.lock();
        state.whole_at = Some(state.revision);
    }

    /// The version that new readers get.
    #[must_use]
    pub fn revision(&self) -> i64 {
        self.inner.state.lock().revision
    }

    /// Everything that there is.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.inner.state.lock().snapshot()
    }

    /// A reader that has this version of this very store, or nothing.
    #[must_use]
    pub fn subscribe(&self, after: Option<i64>) -> Subscription {
        let state = self.inner.state.lock();
        let ours = after.filter(|revision| state.whole_at.is_some_and(|whole| *revision > whole));
        let position = ours.and_then(|revision| state.history.position_of(revision, state.revision));
        Subscription::new(self.clone(), position, self.inner.newest.subscribe())
    }

    /// What a reader at this position gets, and the position afterwards; nothing when it has all.
    fn read(&self, position: Option<u64>) -> Option<(Update, u64)> {
        let state = self.inner.state.lock();
        let newest = state.history.newest();
        match position.map(|position| (position, state.history.after(position))) {
            Some((position, _)) if position == newest => None,
            Some((_, Some(changes))) => {
                let delta = Delta { revision: state.revision, changes: changes.coalesced() };
                Some((Update::Delta(delta), newest))
            }
            _ => Some((Update::Snapshot(state.snapshot()), newest)),
        }
    }
}

impl State {
    fn snapshot(&self) -> Snapshot {
        let entries = self.entries.iter().map(|(k, e)| (k.clone(), e.clone())).collect();
        Snapshot { revision: self.revision, entries }
    }
}

#[cfg(test)]
mod tests;
