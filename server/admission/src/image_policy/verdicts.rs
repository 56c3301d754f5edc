//! Cache of recent verdicts of the backend, by the spec of the review (upstream's `LRUExpireCache`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use portico_kit::expiring_cache::ExpiringCache;

use super::review::Verdict;

/// Cached responses of the image policy webhook.
///
/// Limit (Admission and quota): the least recently used one is removed.
const KEPT: usize = 1024;

/// Size of a request to the image policy webhook with its response that is cached.
///
/// Limit (Admission and quota, bytes): it is not cached.
const KEPT_BYTES: usize = 32 << 10;

/// Cache of verdicts.
pub(super) struct Verdicts(ExpiringCache<Arc<Verdict>>);

impl Default for Verdicts {
    fn default() -> Self {
        Self(ExpiringCache::new(KEPT))
    }
}

impl Verdicts {
    /// Returns the verdict for a spec, if it has not expired at `now`.
    pub(super) fn get(&self, spec: &str, now: Instant) -> Option<Arc<Verdict>> {
        self.0.get(spec, now)
    }

    /// Caches a verdict for `ttl`. `answer_bytes` is the size of the response that contained it.
    pub(super) fn remember(
        &self,
        spec: &str,
        verdict: &Arc<Verdict>,
        answer_bytes: usize,
        (now, life): (Instant, Duration),
    ) {
        if spec.len().saturating_add(answer_bytes) <= KEPT_BYTES {
            self.0.keep(spec, Arc::clone(verdict), now, life);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(30);

    fn remember(verdicts: &Verdicts, spec: &str, answer_bytes: usize, kept: (Instant, Duration)) {
        verdicts.remember(spec, &Arc::default(), answer_bytes, kept);
    }

    #[test]
    fn a_verdict_is_good_for_a_while() {
        let (verdicts, now) = (Verdicts::default(), Instant::now());
        remember(&verdicts, "a", 1, (now, TTL));
        remember(&verdicts, "off", 1, (now, Duration::ZERO));
        assert!(verdicts.get("a", now).is_some());
        assert!(verdicts.get("b", now).is_none() && verdicts.get("off", now).is_none());
        assert!(verdicts.get("a", now + TTL - Duration::from_nanos(1)).is_some());
        assert!(verdicts.get("a", now + TTL).is_none());
    }

    #[test]
    fn what_is_too_long_is_not_remembered() {
        let (verdicts, now) = (Verdicts::default(), Instant::now());
        remember(&verdicts, "long", KEPT_BYTES - 3, (now, TTL));
        remember(&verdicts, "fits", KEPT_BYTES - 4, (now, TTL));
        assert_eq!(["long", "fits"].map(|spec| verdicts.get(spec, now).is_some()), [false, true]);
    }

    #[test]
    fn the_verdict_that_was_used_longest_ago_goes_first() {
        let (verdicts, now) = (Verdicts::default(), Instant::now());
        (0..KEPT).for_each(|spec| remember(&verdicts, &spec.to_string(), 1, (now, TTL)));
        assert!(verdicts.get("0", now).is_some());
        remember(&verdicts, "one more", 1, (now, TTL));
        assert!(verdicts.get("0", now).is_some() && verdicts.get("1", now).is_none());
    }
}
