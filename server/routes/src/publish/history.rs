//! History of the last changes, in the order of publication.

use std::collections::{HashMap, VecDeque};

use crate::entry::TableEntryKey;
use crate::table::TableChanges;

/// One publication: its number, revision label and changes.
struct HistoryEntry {
    number: u64,
    revision: i64,
    changes: TableChanges,
}

/// History bounded by the number of changes; keeps at least one entry. Removed entries cannot be replayed.
pub(super) struct History {
    entries: VecDeque<HistoryEntry>,
    change_count: usize,
    limit: usize,
    /// Number of the newest entry.
    newest: u64,
}

impl History {
    pub(super) fn new(limit: usize) -> Self {
        Self { entries: VecDeque::new(), change_count: 0, limit, newest: 0 }
    }

    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// Appends an entry and returns its number. An entry without changes counts as one change, so that progress updates also have
    /// bounded size.
    pub(super) fn push(&mut self, revision: i64, changes: TableChanges) -> u64 {
        self.newest += 1;
        self.change_count += changes.len().max(1);
        self.entries.push_back(HistoryEntry { number: self.newest, revision, changes });
        while self.change_count > self.limit && self.entries.len() > 1 {
            if let Some(step) = self.entries.pop_front() {
                self.change_count -= step.changes.len().max(1);
            }
        }
        self.newest
    }

    /// Position of a reader that has this version: before the first entry with this label. `None` if the version is no longer or
    /// not yet known.
    pub(super) fn position_of(&self, revision: i64, current: i64) -> Option<u64> {
        let first = self.entries.front()?;
        if revision > current || revision < first.revision {
            return None;
        }
        // Earlier entries with the revision of the first one may have been removed.
        if revision == first.revision && first.number > 1 {
            return None;
        }
        let index = self.entries.partition_point(|step| step.revision < revision);
        self.entries.get(index).map(|step| step.number - 1)
    }

    /// Entries after a position; `None` if some of them were removed.
    pub(super) fn after(&self, position: u64) -> Option<HistoryTail<'_>> {
        let first = self.entries.front().map_or(self.newest + 1, |step| step.number);
        let skip = (position + 1).checked_sub(first)?;
        Some(HistoryTail { steps: &self.entries, skip: usize::try_from(skip).unwrap_or(usize::MAX) })
    }
}

/// Consecutive entries up to the newest.
pub(super) struct HistoryTail<'a> {
    steps: &'a VecDeque<HistoryEntry>,
    skip: usize,
}

impl HistoryTail<'_> {
    /// Last change of each key. Added bundles come before all routes, removed bundles after them.
    pub(super) fn coalesced(&self) -> TableChanges {
        let mut last: HashMap<&TableEntryKey, usize> = HashMap::new();
        let all: Vec<_> = self.steps.iter().skip(self.skip).flat_map(|step| &step.changes).collect();
        for (position, (key, _)) in all.iter().enumerate() {
            last.insert(key, position);
        }
        let latest = all.iter().enumerate().filter(|(position, (key, _))| last.get(key) == Some(position));
        let mut changes: TableChanges = latest.map(|(_, change)| (*change).clone()).collect();
        changes.sort_by_key(|(key, entry)| match (key, entry) {
            (TableEntryKey::Bundle(_), Some(_)) => 0,
            (TableEntryKey::Route(_), _) => 1,
            (TableEntryKey::Bundle(_), None) => 2,
        });
        changes
    }
}
