//! A map that keeps nothing alive: a value goes with the last who holds it, and its key a little later.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

/// See the module.
#[derive(Debug)]
pub(crate) struct WeakMap<K, T> {
    held: HashMap<K, Weak<T>>,
    /// Sweep when the map has grown to this.
    sweep_at: usize,
}

impl<K: Eq + Hash, T> WeakMap<K, T> {
    /// The value of this key, if somebody holds it.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<Arc<T>>
    where
        K: Borrow<Q>,
    {
        self.held.get(key).and_then(Weak::upgrade)
    }

    /// Remembers a value for as long as others hold it.
    pub(crate) fn insert(&mut self, key: K, value: &Arc<T>) {
        if self.held.len() >= self.sweep_at {
            self.held.retain(|_, value| value.strong_count() > 0);
            self.sweep_at = self.held.len() * 2 + 64;
        }
        self.held.insert(key, Arc::downgrade(value));
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }
}

impl<K, T> Default for WeakMap<K, T> {
    fn default() -> Self {
        Self { held: HashMap::new(), sweep_at: 0 }
    }
}
