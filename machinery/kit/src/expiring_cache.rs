//! Bounded cache of values with an expiration time, such as answers of webhooks (upstream's `LRUExpireCache`).

use std::time::{Duration, Instant};

use hashlink::LruCache;
use parking_lot::Mutex;

/// Bounded map from text to values with an expiration time.
pub struct ExpiringCache<V>(Mutex<LruCache<Box<str>, CacheEntry<V>>>);

struct CacheEntry<V> {
    value: V,
    expires_at: Instant,
}

impl<V: Clone> ExpiringCache<V> {
    /// Returns a cache for this number of values; the least recently used value is evicted first.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self(Mutex::new(LruCache::new(capacity)))
    }

    /// Returns the value if it has not expired at `now`.
    #[must_use]
    pub fn get(&self, key: &str, now: Instant) -> Option<V> {
        let mut entries = self.0.lock();
        let entry = entries.get(key)?;
        if entry.expires_at <= now {
            entries.remove(key);
            return None;
        }
        Some(entry.value.clone())
    }

    /// Removes a value.
    pub fn remove(&self, key: &str) {
        self.0.lock().remove(key);
    }

    /// Stores a value that expires `ttl` after `now`.
    pub fn insert(&self, key: &str, value: V, now: Instant, ttl: Duration) {
        if let Some(expires_at) = now.checked_add(ttl).filter(|until| *until > now) {
            self.0.lock().insert(key.into(), CacheEntry { value, expires_at });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: usize = 100;
    const TTL: Duration = Duration::from_secs(30);

    #[test]
    fn a_value_expires_after_its_ttl() {
        let (cache, now) = (ExpiringCache::new(CAPACITY), Instant::now());
        cache.insert("a", 1, now, TTL);
        cache.insert("off", 2, now, Duration::ZERO);
        assert_eq!(cache.get("a", now + TTL - Duration::from_nanos(1)), Some(1));
        assert_eq!(cache.get("a", now + TTL), None);
        assert_eq!(cache.get("off", now), None);
    }

    #[test]
    fn the_least_recently_used_value_is_evicted_first() {
        let (cache, now) = (ExpiringCache::new(CAPACITY), Instant::now());
        (0..CAPACITY).for_each(|n| cache.insert(&n.to_string(), n, now, TTL));
        assert_eq!(cache.get("0", now), Some(0));
        cache.insert("more", 1, now, TTL);
        assert_eq!((cache.get("0", now), cache.get("1", now)), (Some(0), None));
    }
}
