//! Map with weak references to its values: a value is dropped with its last reference, and its key at the next sweep.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

/// Map with weak references to its values.
#[derive(Debug)]
pub(crate) struct WeakMap<K, T> {
    entries: HashMap<K, Weak<T>>,
    /// Number of entries at which the map is swept.
    sweep_at: usize,
}

impl<K: Eq + Hash, T> WeakMap<K, T> {
    /// Returns the value of a key if it is still referenced.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<Arc<T>>
    where
        K: Borrow<Q>,
    {
        self.entries.get(key).and_then(Weak::upgrade)
    }

    /// Adds a weak reference to a value.
    pub(crate) fn insert(&mut self, key: K, value: &Arc<T>) {
        if self.entries.len() >= self.sweep_at {
            self.entries.retain(|_, value| value.strong_count() > 0);
            self.sweep_at = self.entries.len() * 2 + 64;
        }
        self.entries.insert(key, Arc::downgrade(value));
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

impl<K, T> Default for WeakMap<K, T> {
    fn default() -> Self {
        Self { entries: HashMap::new(), sweep_at: 0 }
    }
}
