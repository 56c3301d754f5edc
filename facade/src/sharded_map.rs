//! A map that is read as an immutable snapshot and changed at low cost: a tree of three levels, copied on write.
//!
//! A change copies 64 + 64 pointers and one small leaf (n / 4096 entries), so that a change to a table of thousands of routes
//! costs microseconds and does not affect readers of the old snapshot.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Number of branches, and of leaves per branch.
const WIDTH: usize = 64;

/// Persistent map from text, such as paths, to values that are cheap to clone.
#[derive(Clone, Debug)]
pub struct ShardedMap<V> {
    branches: Arc<[Branch<V>]>,
    hasher: RandomState,
    len: usize,
}

type Branch<V> = Arc<[Leaf<V>]>;
/// Unordered entries of a leaf. There are few of them, so a linear search is faster than a second hash.
type Leaf<V> = Arc<Vec<(Arc<str>, V)>>;

impl<V: Clone> ShardedMap<V> {
    /// Creates an empty map.
    #[must_use]
    pub fn new() -> Self {
        let leaf: Leaf<V> = Arc::new(Vec::new());
        let branch: Branch<V> = vec![leaf; WIDTH].into();
        Self { branches: vec![branch; WIDTH].into(), hasher: RandomState::new(), len: 0 }
    }

    /// Value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&V> {
        let (branch, leaf) = self.leaf_index(key);
        self.branches[branch][leaf].iter().find(|(k, _)| &**k == key).map(|(_, value)| value)
    }

    /// True if there is a value for this key.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Inserts a value and returns the previous one.
    pub fn insert(&mut self, key: Arc<str>, value: V) -> Option<V> {
        let leaf = self.leaf_mut(&key);
        match leaf.iter_mut().find(|(k, _)| *k == key) {
            Some((_, old)) => Some(std::mem::replace(old, value)),
            None => {
                // Most leaves only ever have one or two entries: a capacity of four would use most of the map's memory.
                leaf.reserve_exact(1);
                leaf.push((key, value));
                self.len += 1;
                None
            }
        }
    }

    /// Removes and returns a value.
    pub fn remove(&mut self, key: &str) -> Option<V> {
        // The lookup avoids the copy of a leaf that would not change.
        self.get(key)?;
        let leaf = self.leaf_mut(key);
        let at = leaf.iter().position(|(k, _)| &**k == key)?;
        let (_, old) = leaf.swap_remove(at);
        self.len -= 1;
        Some(old)
    }

    /// Number of entries.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// All entries, unordered.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &V)> {
        let leaves = self.branches.iter().flat_map(|branch| branch.iter());
        leaves.flat_map(|leaf| leaf.iter()).map(|(key, value)| (key, value))
    }

    fn leaf_index(&self, key: &str) -> (usize, usize) {
        let hash = self.hasher.hash_one(key);
        ((hash >> 32) as usize % WIDTH, hash as usize % WIDTH)
    }

    fn leaf_mut(&mut self, key: &str) -> &mut Vec<(Arc<str>, V)> {
        let (branch, leaf) = self.leaf_index(key);
        Arc::make_mut(&mut Arc::make_mut(&mut Arc::make_mut(&mut self.branches)[branch])[leaf])
    }
}

impl<V: Clone> Default for ShardedMap<V> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_snapshot_does_not_see_later_changes() {
        let mut map = ShardedMap::new();
        map.insert("a".into(), 1);
        let snapshot = map.clone();
        map.insert("a".into(), 2);
        map.remove("b");
        assert_eq!((snapshot.get("a"), map.get("a"), map.len()), (Some(&1), Some(&2), 1));
    }

    proptest! {
        #[test]
        fn a_sharded_map_behaves_as_a_plain_map(ops in prop::collection::vec(("[a-d]{1,2}", any::<bool>(), 0..9), 0..200)) {
            let mut plain = HashMap::new();
            let mut map = ShardedMap::new();
            for (key, insert, value) in ops {
                if insert {
                    prop_assert_eq!(map.insert(key.as_str().into(), value), plain.insert(key, value));
                } else {
                    prop_assert_eq!(map.remove(&key), plain.remove(&key));
                }
                prop_assert_eq!(map.len(), plain.len());
            }
            for (key, value) in &plain {
                prop_assert_eq!(map.get(key), Some(value));
            }
            prop_assert_eq!(map.iter().count(), plain.len());
        }
    }
}
