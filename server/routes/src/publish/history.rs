//! The last changes, in the order in which they were published.

use std::collections::{HashMap, VecDeque};

use crate::entry::EntryKey;
use crate::table::Changes;

/// One publication: its number, the revision that it was labelled with, what it changed.
struct Step {
    number: u64,
    revision: i64,
    changes: Changes,
}

/// Bounded by the number of changes, at least one step is kept. What is dropped can no longer be replayed.
pub(super) struct History {
    steps: VecDeque<Step>,
    changes: usize,
    bound: usize,
    /// The number of the newest step ever pushed.
    newest: u64,
}

impl History {
    pub(super) fn new(bound: usize) -> Self {
        Self { steps: VecDeque::new(), changes: 0, bound, newest: 0 }
    }

    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// Appends a step and answers its number. Steps that change nothing count as one change, so that progress marks
    /// cannot grow the history either.
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

    /// The position of a reader that has this version: before the first step labelled with it. Nothing when that is no
    /// longer (or not yet) known.
    pub(super) fn position_of(&self, revision: i64, current: i64) -> Option<u64> {
        let first = self.steps.front()?;
        if revision > current || revision < first.revision {
            return None;
        }
        // The front's own revision may have had earlier steps that are gone.
        if revision == first.revision && first.number > 1 {
            return None;
        }
        let index = self.steps.partition_point(|step| step.revision < revision);
        self.steps.get(index).map(|step| step.number - 1)
    }

    /// The steps after a position, unless some of them are gone.
    pub(super) fn after(&self, position: u64) -> Option<Steps<'_>> {
        let first = self.steps.front().map_or(self.newest + 1, |step| step.number);
        let skip = (position + 1).checked_sub(first)?;
        Some(Steps { steps: &self.steps, skip: usize::try_from(skip).unwrap_or(usize::MAX) })
    }
}

/// A run of steps up to the newest.
pub(super) struct Steps<'a> {
    steps: &'a VecDeque<Step>,
    skip: usize,
}

impl Steps<'_> {
    /// The last change of each key. Bundles that came stay before all routes, bundles that went behind them.
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
