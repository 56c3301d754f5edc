//! Equal values, held once: what thousands of objects say alike costs the memory of one.
//!
//! A pool keeps nothing alive: a value goes with the last who holds it.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

use crate::weak_map::WeakMap;

/// See the module.
#[derive(Debug)]
pub struct Pool<T> {
    held: WeakMap<u64, T>,
    hasher: RandomState,
}

impl<T: Eq + Hash> Pool<T> {
    /// The value that others hold, if there is an equal one; this one, for others to hold, otherwise.
    pub fn share(&mut self, value: impl Into<Arc<T>>) -> Arc<T> {
        let value = value.into();
        let hash = self.hasher.hash_one(&value);
        match self.held.get(&hash) {
            Some(held) if held == value => held,
            // Another value has the same hash: this one is not shared, which harms nobody.
            Some(_) => value,
            None => {
                self.held.insert(hash, &value);
                value
            }
        }
    }
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { held: WeakMap::default(), hasher: RandomState::new() }
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
