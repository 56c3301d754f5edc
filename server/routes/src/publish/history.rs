//! History of the last changes, in the order of publication.

use std::collections::{HashMap, VecDeque};

use crate::entry::EntryKey;
use crate::table::Changes;

/// One publication: its number, revision label and changes.
struct Step {
    number: u64,
    revision: i64,
    changes: Changes,
}

/// History bounded by the number of changes; keeps at least one entry. Removed entries cannot be replayed.
pub(super) struct History {
    steps: VecDeque<Step>,
    changes: usize,
    bound: usize,
    /// Number of the newest entry.
    newest: u64,
}

impl History {
    pub(super) fn new(bound: usize) -> Self {
        Self { steps: VecDeque::new(), changes: 0, bound, newest: 0 }
    }

    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// Appends an entry and returns its number. An entry without changes counts as one change, so that progress updates also have
    /// bounded size.
    pub(super) fn push(&mut self, revision: i64, changes: Changes) -> u64 {
        self.newest += 1;
        self.changes += changes.len().max(1);
        self.steps.push_back(Step { number: self.newest, revision, changes });
        while self.changes > self.bound && self.steps.len() > 1 {
            if let Some(step) = self.steps.pop_front() {
                self.changes -= step.changes.len().max(1);
            }
        }
        self.newest
    }

    /// Position of a reader that has this version: before the first entry with this label. `None` if the version is no longer or
    /// not yet known.
    pub(super) fn position_of(&self, revision: i64, current: i64) -> Option<u64> {
        let first = self.steps.front()?;
        if revision > current || revision < first.revision {
            return None;
        }
        // Earlier entries with the revision of the first one may have been removed.
        if revision == first.revision && first.number > 1 {
            return None;
        }
        let index = self.steps.partition_point(|step| step.revision < revision);
        self.steps.get(index).map(|step| step.number - 1)
    }

    /// Entries after a position; `None` if some of them were removed.
    pub(super) fn after(&self, position: u64) -> Option<Steps<'_>> {
        let first = self.steps.front().map_or(self.newest + 1, |step| step.number);
        let skip = (position + 1).checked_sub(first)?;
        Some(Steps { steps: &self.steps, skip: usize::try_from(skip).unwrap_or(usize::MAX) })
    }
}

/// Consecutive entries up to the newest.
pub(super) struct Steps<'a> {
    steps: &'a VecDeque<Step>,
    skip: usize,
}

impl Steps<'_> {
    /// Last change of each key. Added bundles come before all routes, removed bundles after them.
    pub(super) fn coalesced(&self) -> Changes {
        let mut last: HashMap<&EntryKey, usize> = HashMap::new();
        let all: Vec<_> = self.steps.iter().skip(self.skip).flat_map(|step| &step.changes).collect();
        for (position, (key, _)) in all.iter().enumerate() {
            last.insert(key, position);
        }
        let kept = all.iter().enumerate().filter(|(position, (key, _))| last.get(key) == Some(position));
        let mut changes: Changes = kept.map(|(_, change)| (*change).clone()).collect();
        changes.sort_by_key(|(key, entry)| match (key, entry) {
            (EntryKey::Bundle(_), Some(_)) => 0,
            (EntryKey::Route(_), _) => 1,
            (EntryKey::Bundle(_), None) => 2,
        });
        changes
    }
}
