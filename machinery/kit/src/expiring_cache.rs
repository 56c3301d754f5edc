//! Bounded cache of values with an expiration time, such as answers of webhooks (upstream's `LRUExpireCache`).

use std::time::{Duration, Instant};

use hashlink::LruCache;
use parking_lot::Mutex;

/// Bounded map from text to values with an expiration time.
pub struct ExpiringCache<V>(Mutex<LruCache<Box<str>, Entry<V>>>);

struct Entry<V> {
    value: V,
    until: Instant,
}

impl<V: Clone> ExpiringCache<V> {
    /// Returns a cache for this number of values; the least recently used value is evicted first.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self(Mutex::new(LruCache::new(most)))
    }

    /// Returns the value if it has not expired at `now`.
    #[must_use]
    pub fn get(&self, key: &str, now: Instant) -> Option<V> {
        let mut known = self.0.lock();
        let found = known.get(key)?;
        if found.until <= now {
            known.remove(key);
            return None;
        }
        Some(found.value.clone())
    }

    /// Removes a value.
    pub fn forget(&self, key: &str) {
        self.0.lock().remove(key);
    }

    /// Stores a value that expires `ttl` after `now`.
    pub fn keep(&self, key: &str, value: V, now: Instant, life: Duration) {
        if let Some(until) = now.checked_add(life).filter(|until| *until > now) {
            self.0.lock().insert(key.into(), Entry { value, until });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 100;
    const TTL: Duration = Duration::from_secs(30);

    #[test]
    fn a_value_is_good_for_its_life() {
        let (cache, now) = (ExpiringCache::new(MOST), Instant::now());
        cache.keep("a", 1, now, TTL);
        cache.keep("off", 2, now, Duration::ZERO);
        assert_eq!(cache.get("a", now + TTL - Duration::from_nanos(1)), Some(1));
        assert_eq!(cache.get("a", now + TTL), None);
        assert_eq!(cache.get("off", now), None);
    }

    #[test]
    fn the_value_that_was_used_longest_ago_goes_first() {
        let (cache, now) = (ExpiringCache::new(MOST), Instant::now());
        (0..MOST).for_each(|n| cache.keep(&n.to_string(), n, now, TTL));
        assert_eq!(cache.get("0", now), Some(0));
        cache.keep("more", 1, now, TTL);
        assert_eq!((cache.get("0", now), cache.get("1", now)), (Some(0), None));
    }
}
