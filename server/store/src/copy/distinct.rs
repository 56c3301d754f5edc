//! Gives each state a revision of its own, where several have one: etcd gives one to all that one transaction writes, and other
//! databases keep one state by a revision.
//!
//! The first keeps it. Others get higher ones, behind all that are in use, and so does what follows them: of each object the last
//! state keeps the highest. Such a copy is no copy of the revisions any more, and begins a new epoch.

use std::collections::{HashMap, HashSet};

use super::state::StoredState;
use crate::key::Key;

/// See the module.
pub(super) struct Distinct {
    /// The revisions of states that were added; eight bytes and a little of each object.
    taken: HashSet<i64>,
    /// The objects whose last states have got another revision, and which.
    moved: HashMap<Key, i64>,
    /// The last revision that was given.
    last: i64,
    /// The last revision that was followed to.
    followed: i64,
}

impl Distinct {
    /// All revisions beyond `beyond` are free.
    pub(super) fn new(beyond: i64) -> Self {
        Self { taken: HashSet::new(), moved: HashMap::new(), last: beyond, followed: 0 }
    }

    /// Of states of different objects, in any order of revisions.
    pub(super) fn add(&mut self, states: &mut [StoredState]) {
        for state in states {
            if !self.taken.insert(state.revision) {
                self.number(state);
            }
        }
    }

    /// Of states that follow those that were added, in the order of revisions.
    pub(super) fn follow(&mut self, states: &mut [StoredState]) {
        // None of those that were added is met again.
        self.taken = HashSet::new();
        for state in states {
            let is_shared = std::mem::replace(&mut self.followed, state.revision) == state.revision;
            if is_shared || self.moved.contains_key(&state.key) {
                self.number(state);
            }
        }
    }

    /// The last revision that was given, if one was.
    pub(super) fn last(&self) -> Option<i64> {
        (!self.moved.is_empty()).then_some(self.last)
    }

    fn number(&mut self, state: &mut StoredState) {
        self.last += 1;
        state.revision = self.last;
        if let Some(previous) = self.moved.insert(state.key.clone(), self.last) {
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

    fn shown(states: &[StoredState]) -> Vec<(&str, i64, i64)> {
        states.iter().map(|state| (state.key.name(), state.revision, state.previous)).collect()
    }

    #[test]
    fn states_with_revisions_of_their_own_keep_them() {
        let mut distinct = Distinct::new(100);
        let mut added = [state("a", 7, 0), state("b", 3, 0)];
        distinct.add(&mut added);
        let mut followed = [state("a", 8, 7), state("b", 9, 3), state("a", 10, 8)];
        distinct.follow(&mut followed);
        assert_eq!(shown(&added), [("a", 7, 0), ("b", 3, 0)]);
        assert_eq!(shown(&followed), [("a", 8, 7), ("b", 9, 3), ("a", 10, 8)]);
        assert_eq!(distinct.last(), None);
    }

    #[test]
    fn of_several_with_one_revision_all_but_the_first_go_on_behind_all() {
        let mut distinct = Distinct::new(100);
        let mut added = [state("a", 7, 0), state("b", 7, 0), state("c", 3, 0)];
        distinct.add(&mut added);
        assert_eq!(shown(&added), [("a", 7, 0), ("b", 101, 0), ("c", 3, 0)]);
        let mut followed = [state("a", 8, 7), state("c", 8, 3), state("b", 9, 7)];
        distinct.follow(&mut followed);
        assert_eq!(shown(&followed), [("a", 8, 7), ("c", 102, 3), ("b", 103, 101)]);
        // A revision may come in two parts.
        let mut more = [state("d", 9, 0), state("c", 10, 8)];
        distinct.follow(&mut more);
        assert_eq!(shown(&more), [("d", 104, 0), ("c", 105, 102)]);
        assert_eq!(distinct.last(), Some(105));
    }
}
