//! Cache of recent verdicts of the backend, by the spec of the review (upstream's `LRUExpireCache`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use portico_kit::expiring_cache::ExpiringCache;

use super::review::Verdict;

/// Cached responses of the image policy webhook.
///
/// Limit (Admission and quota): the least recently used one is removed.
const MAX_ENTRIES: usize = 1024;

/// Size of a request to the image policy webhook with its response that is cached.
///
/// Limit (Admission and quota, bytes): it is not cached.
const MAX_ENTRY_BYTES: usize = 32 << 10;

/// Cache of verdicts.
pub(super) struct Verdicts(ExpiringCache<Arc<Verdict>>);

impl Default for Verdicts {
    fn default() -> Self {
        Self(ExpiringCache::new(MAX_ENTRIES))
    }
}

impl Verdicts {
    /// Returns the verdict for a spec, if it has not expired at `now`.
    pub(super) fn get(&self, spec: &str, now: Instant) -> Option<Arc<Verdict>> {
        self.0.get(spec, now)
    }

    /// Caches a verdict until `ttl` after `now`. `answer_bytes` is the size of the response that contained it.
    pub(super) fn insert(
        &self,
        spec: &str,
        verdict: &Arc<Verdict>,
        answer_bytes: usize,
        (now, ttl): (Instant, Duration),
    ) {
        if spec.len().saturating_add(answer_bytes) <= MAX_ENTRY_BYTES {
            self.0.insert(spec, Arc::clone(verdict), now, ttl);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(30);

    fn insert_verdict(
        verdicts: &Verdicts,
        spec: &str,
        answer_bytes: usize,
        time_and_ttl: (Instant, Duration),
    ) {
        verdicts.insert(spec, &Arc::default(), answer_bytes, time_and_ttl);
    }

    #[test]
    fn a_verdict_expires() {
        let (verdicts, now) = (Verdicts::default(), Instant::now());
        insert_verdict(&verdicts, "a", 1, (now, TTL));
        insert_verdict(&verdicts, "off", 1, (now, Duration::ZERO));
        assert!(verdicts.get("a", now).is_some());
        assert!(verdicts.get("b", now).is_none() && verdicts.get("off", now).is_none());
        assert!(verdicts.get("a", now + TTL - Duration::from_nanos(1)).is_some());
        assert!(verdicts.get("a", now + TTL).is_none());
    }

    #[test]
    fn large_entries_are_not_cached() {
        let (verdicts, now) = (Verdicts::default(), Instant::now());
        insert_verdict(&verdicts, "long", MAX_ENTRY_BYTES - 3, (now, TTL));
        insert_verdict(&verdicts, "fits", MAX_ENTRY_BYTES - 4, (now, TTL));
        assert_eq!(["long", "fits"].map(|spec| verdicts.get(spec, now).is_some()), [false, true]);
    }

    #[test]
    fn the_least_recently_used_verdict_is_evicted_first() {
        let (verdicts, now) = (Verdicts::default(), Instant::now());
        (0..MAX_ENTRIES).for_each(|spec| insert_verdict(&verdicts, &spec.to_string(), 1, (now, TTL)));
        assert!(verdicts.get("0", now).is_some());
        insert_verdict(&verdicts, "one more", 1, (now, TTL));
        assert!(verdicts.get("0", now).is_some() && verdicts.get("1", now).is_none());
    }
}
