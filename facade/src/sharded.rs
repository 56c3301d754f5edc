//! A map that is read as an immutable snapshot and changed cheaply: 256 shards, copied on write.
//!
//! A change copies one shard (n / 256 entries) and 256 pointers, so that one delta to a table of
//! thousands of routes costs microseconds, and readers of the old snapshot are not disturbed.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

const SHARDS: usize = 256;

/// A persistent map from paths (or other text) to values that are cheap to clone.
#[derive(Clone, Debug)]
pub struct ShardedMap<V> {
    shards: Arc<[Arc<Shard<V>>]>,
    hasher: RandomState,
    len: usize,
}

type Shard<V> = HashMap<Arc<str>, V, RandomState>;

impl<V: Clone> ShardedMap<V> {
    /// No entries.
    #[must_use]
    pub fn new() -> Self {
        let hasher = RandomState::new();
        let empty = Arc::new(Shard::with_hasher(hasher.clone()));
        Self { shards: vec![empty; SHARDS].into(), hasher, len: 0 }
    }

    /// The value under this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&V> {
        self.shards[self.shard_of(key)].get(key)
    }

    /// Whether there is a value under this key.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Puts a value; returns the one that it replaces.
    pub fn insert(&mut self, key: Arc<str>, value: V) -> Option<V> {
        let shard = self.shard_of(&key);
        let old = self.shard_mut(shard).insert(key, value);
        self.len += usize::from(old.is_none());
        old
    }

    /// Takes a value out.
    pub fn remove(&mut self, key: &str) -> Option<V> {
        // Looking first spares the copy of a shard that would not change.
        let shard = self.shard_of(key);
        self.shards[shard].get(key)?;
        let old = self.shard_mut(shard).remove(key);
        self.len -= usize::from(old.is_some());
        old
    }

    /// How many entries there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &V)> {
        self.shards.iter().flat_map(|shard| shard.iter())
    }

    fn shard_of(&self, key: &str) -> usize {
        // The top byte: hash tables use the low bits and seven top bits of their own.
        (self.hasher.hash_one(key) >> 24) as usize % SHARDS
    }

    fn shard_mut(&mut self, index: usize) -> &mut Shard<V> {
        Arc::make_mut(&mut Arc::make_mut(&mut self.shards)[index])
    }
}

impl<V: Clone> Default for ShardedMap<V> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
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
        fn it_behaves_as_a_plain_map(ops in prop::collection::vec(("[a-d]{1,2}", any::<bool>(), 0..9), 0..200)) {
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
