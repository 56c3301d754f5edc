//! Equal values, held once: what thousands of objects say alike costs the memory of one.
//!
//! A pool keeps nothing alive: a value goes with the last who holds it.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, Weak};

/// See the module.
#[derive(Debug)]
pub struct Pool<T> {
    held: HashMap<u64, Weak<T>>,
    hasher: RandomState,
    /// Sweep when the pool has grown to this.
    sweep_at: usize,
}

impl<T: Eq + Hash> Pool<T> {
    /// The value that others hold, if there is an equal one; this one, for others to hold, otherwise.
    pub fn share(&mut self, value: impl Into<Arc<T>>) -> Arc<T> {
        let value = value.into();
        let hash = self.hasher.hash_one(&value);
        match self.held.get(&hash).and_then(Weak::upgrade) {
            Some(held) if held == value => return held,
            // Another value has the same hash: this one is not shared, which harms nobody.
            Some(_) => return value,
            None => {}
        }
        if self.held.len() >= self.sweep_at {
            self.held.retain(|_, value| value.strong_count() > 0);
            self.sweep_at = self.held.len() * 2 + 64;
        }
        self.held.insert(hash, Arc::downgrade(&value));
        value
    }
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { held: HashMap::new(), hasher: RandomState::new(), sweep_at: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_for_as_long_as_somebody_holds_it() {
        let mut pool: Pool<String> = Pool::default();
        let one = pool.share("a".to_owned());
        assert!(Arc::ptr_eq(&one, &pool.share("a".to_owned())));
        assert!(!Arc::ptr_eq(&one, &pool.share("b".to_owned())));
        for n in 0..1000 {
            pool.share(n.to_string());
        }
        assert!(pool.held.len() < 200, "what nobody holds is swept out");
        assert!(Arc::ptr_eq(&one, &pool.share("a".to_owned())));
    }
}
