//! Assigns distinct revisions to states that share one: etcd gives one revision to all writes of a transaction, and other
//! databases store one state per revision.
//!
//! The first state keeps the revision. The others, and later states of their objects, get revisions above all existing ones, so
//! the last state of each object has the highest. The copy does not preserve revisions and therefore begins a new epoch.

use std::collections::{HashMap, HashSet};

use super::state::StoredState;
use crate::key::Key;

/// Assigns distinct revisions to states.
pub(super) struct RevisionAllocator {
    /// Revisions of the added states: a few more than eight bytes per object.
    used: HashSet<i64>,
    /// Last states of objects that got a new revision, and the new revisions.
    renumbered: HashMap<Key, i64>,
    /// Last allocated revision.
    last_allocated: i64,
    /// Revision of the last state passed to `follow`.
    last_followed: i64,
}

impl RevisionAllocator {
    /// Creates an allocator of the revisions above `floor`.
    pub(super) fn new(floor: i64) -> Self {
        Self { used: HashSet::new(), renumbered: HashMap::new(), last_allocated: floor, last_followed: 0 }
    }

    /// Processes states of different objects, in any order of revisions.
    pub(super) fn add(&mut self, states: &mut [StoredState]) {
        for state in states {
            if !self.used.insert(state.revision) {
                self.renumber(state);
            }
        }
    }

    /// Processes states that follow the added ones, in revision order.
    pub(super) fn follow(&mut self, states: &mut [StoredState]) {
        // Later states have revisions above those of the added states.
        self.used = HashSet::new();
        for state in states {
            let is_shared = std::mem::replace(&mut self.last_followed, state.revision) == state.revision;
            if is_shared || self.renumbered.contains_key(&state.key) {
                self.renumber(state);
            }
        }
    }

    /// Returns the last allocated revision, if any.
    pub(super) fn last_allocated(&self) -> Option<i64> {
        (!self.renumbered.is_empty()).then_some(self.last_allocated)
    }

    fn renumber(&mut self, state: &mut StoredState) {
        self.last_allocated += 1;
        state.revision = self.last_allocated;
        if let Some(previous) = self.renumbered.insert(state.key.clone(), self.last_allocated) {
            state.previous = previous;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Resource;

    fn state(name: &str, revision: i64, previous: i64) -> StoredState {
        let key = Key::new(&Resource::new("", "things"), "a", name);
        let (uid, value, owners) = (String::new(), vec![1], Some(Vec::new()));
        StoredState { key, revision, uid, previous, deleted: false, value, owners }
    }

    fn summary(states: &[StoredState]) -> Vec<(&str, i64, i64)> {
        states.iter().map(|state| (state.key.name(), state.revision, state.previous)).collect()
    }

    #[test]
    fn states_with_distinct_revisions_keep_them() {
        let mut allocator = RevisionAllocator::new(100);
        let mut added = [state("a", 7, 0), state("b", 3, 0)];
        allocator.add(&mut added);
        let mut followed = [state("a", 8, 7), state("b", 9, 3), state("a", 10, 8)];
        allocator.follow(&mut followed);
        assert_eq!(summary(&added), [("a", 7, 0), ("b", 3, 0)]);
        assert_eq!(summary(&followed), [("a", 8, 7), ("b", 9, 3), ("a", 10, 8)]);
        assert_eq!(allocator.last_allocated(), None);
    }

    #[test]
    fn all_but_the_first_state_of_a_revision_get_revisions_above_all_others() {
        let mut allocator = RevisionAllocator::new(100);
        let mut added = [state("a", 7, 0), state("b", 7, 0), state("c", 3, 0)];
        allocator.add(&mut added);
        assert_eq!(summary(&added), [("a", 7, 0), ("b", 101, 0), ("c", 3, 0)]);
        let mut followed = [state("a", 8, 7), state("c", 8, 3), state("b", 9, 7)];
        allocator.follow(&mut followed);
        assert_eq!(summary(&followed), [("a", 8, 7), ("c", 102, 3), ("b", 103, 101)]);
        // A revision may be split between two parts.
        let mut more = [state("d", 9, 0), state("c", 10, 8)];
        allocator.follow(&mut more);
        assert_eq!(summary(&more), [("d", 104, 0), ("c", 105, 102)]);
        assert_eq!(allocator.last_allocated(), Some(105));
    }
}
