//! Interning of equal values: data shared by thousands of objects is stored once.
//!
//! A pool does not keep values alive: a value is dropped with its last reference.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

use crate::weak_map::WeakMap;

/// Pool of interned values with weak references.
#[derive(Debug)]
pub struct Pool<T> {
    values: WeakMap<u64, T>,
    hasher: RandomState,
}

impl<T: Eq + Hash> Pool<T> {
    /// Returns an equal value that is already in use. If there is none, shares this value and returns it.
    pub fn share(&mut self, value: impl Into<Arc<T>>) -> Arc<T> {
        let value = value.into();
        let hash = self.hasher.hash_one(&value);
        match self.values.get(&hash) {
            Some(existing) if existing == value => existing,
            // A different value has the same hash: this one is not shared, which only costs memory.
            Some(_) => value,
            None => {
                self.values.insert(hash, &value);
                value
            }
        }
    }
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { values: WeakMap::default(), hasher: RandomState::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_shared_while_referenced() {
        let mut pool: Pool<String> = Pool::default();
        let one = pool.share("a".to_owned());
        assert!(Arc::ptr_eq(&one, &pool.share("a".to_owned())));
        assert!(!Arc::ptr_eq(&one, &pool.share("b".to_owned())));
        for n in 0..1000 {
            pool.share(n.to_string());
        }
        assert!(pool.values.len() < 200, "unreferenced values are swept");
        assert!(Arc::ptr_eq(&one, &pool.share("a".to_owned())));
    }
}
