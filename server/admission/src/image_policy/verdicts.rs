//! What the backend has answered lately, by what it was asked (upstream's `LRUExpireCache`).

use std::sync::Arc;
use std::time::Instant;

use hashlink::LruCache;
use parking_lot::Mutex;

use super::review::Verdict;

/// How many are kept; that which was used longest ago goes first.
const KEPT: usize = 1024;

/// A question and its answer that are longer together are not remembered: annotations are for anybody to write.
const KEPT_BYTES: usize = 32 << 10;

/// See the module.
pub(super) struct Verdicts(Mutex<LruCache<Box<str>, Known>>);

struct Known {
    verdict: Arc<Verdict>,
    until: Instant,
}

impl Default for Verdicts {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(KEPT)))
    }
}

impl Verdicts {
    /// The verdict that is good at this time.
    pub(super) fn get(&self, spec: &str, now: Instant) -> Option<Arc<Verdict>> {
        let mut known = self.0.lock();
        let found = known.get(spec)?;
        if found.until <= now {
            known.remove(spec);
            return None;
        }
        Some(Arc::clone(&found.verdict))
    }

    /// Keeps a verdict, read off an answer of so many bytes, until this time.
    pub(super) fn remember(&self, spec: &str, verdict: &Arc<Verdict>, answer_bytes: usize, until: Instant) {
        if spec.len().saturating_add(answer_bytes) <= KEPT_BYTES {
            self.0.lock().insert(spec.into(), Known { verdict: Arc::clone(verdict), until });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const TTL: Duration = Duration::from_secs(30);

    fn remember(verdicts: &Verdicts, spec: &str, answer_bytes: usize, until: Instant) {
        verdicts.remember(spec, &Arc::default(), answer_bytes, until);
    }

    #[test]
    fn a_verdict_is_good_for_a_while() {
        let (verdicts, now) = (Verdicts::default(), Instant::now());
        remember(&verdicts, "a", 1, now + TTL);
        remember(&verdicts, "off", 1, now);
        assert!(verdicts.get("a", now).is_some());
        assert!(verdicts.get("b", now).is_none() && verdicts.get("off", now).is_none());
        assert!(verdicts.get("a", now + TTL - Duration::from_nanos(1)).is_some());
        assert!(verdicts.get("a", now + TTL).is_none());
    }

    #[test]
    fn what_is_too_long_is_not_remembered() {
        let (verdicts, now) = (Verdicts::default(), Instant::now());
        remember(&verdicts, "long", KEPT_BYTES - 3, now + TTL);
        remember(&verdicts, "fits", KEPT_BYTES - 4, now + TTL);
        assert_eq!(["long", "fits"].map(|spec| verdicts.get(spec, now).is_some()), [false, true]);
    }

    #[test]
    fn the_verdict_that_was_used_longest_ago_goes_first() {
        let (verdicts, now) = (Verdicts::default(), Instant::now());
        (0..KEPT).for_each(|spec| remember(&verdicts, &spec.to_string(), 1, now + TTL));
        assert!(verdicts.get("0", now).is_some());
        remember(&verdicts, "one more", 1, now + TTL);
        assert!(verdicts.get("0", now).is_some() && verdicts.get("1", now).is_none());
    }
}
