//! Results of the calls of a webhook, for Explain and for logging consecutive failures once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

/// Results of the calls of a webhook.
#[derive(Default)]
pub(crate) struct WebhookHealth {
    /// Time of the last answer, in milliseconds since 1970; zero if there was none.
    answered_ms: AtomicU64,
    failure: Mutex<Option<FailureRecord>>,
}

/// Last failure in a series of consecutive failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailureRecord {
    /// Error of the call.
    pub(crate) reason: String,
    /// Time of the failure, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// Time of the first failure after the last answer, in milliseconds since 1970.
    pub(crate) since_ms: u64,
}

impl WebhookHealth {
    /// Records an answer, regardless of its content.
    pub(super) fn record_answer(&self) {
        self.answered_ms.store(now_ms(), Ordering::Relaxed);
    }

    /// Records a failed call. Returns true for the first failure since the last answer.
    pub(super) fn record_failure(&self, reason: &str) -> bool {
        let (mut failure, at_ms) = (self.failure.lock(), now_ms());
        let last_answer_ms = self.answered_ms.load(Ordering::Relaxed);
        let before = failure.as_ref().filter(|failure| failure.at_ms >= last_answer_ms);
        let since_ms = before.map_or(at_ms, |failure| failure.since_ms);
        let first = before.is_none();
        *failure = Some(FailureRecord { reason: reason.to_owned(), at_ms, since_ms });
        first
    }

    /// Returns the time of the last answer; `None` if there was none.
    pub(crate) fn answered_ms(&self) -> Option<u64> {
        Some(self.answered_ms.load(Ordering::Relaxed)).filter(|at| *at > 0)
    }

    /// Returns the last failure, even if there was an answer since.
    pub(crate) fn last_failure(&self) -> Option<FailureRecord> {
        self.failure.lock().clone()
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_failures_start_with_the_first() {
        let health = WebhookHealth::default();
        assert_eq!((health.answered_ms(), health.last_failure()), (None, None));
        assert!(health.record_failure("a"));
        let first = health.last_failure().unwrap();
        assert!(!health.record_failure("b"));
        let last = health.last_failure().unwrap();
        assert_eq!((last.reason.as_str(), last.since_ms), ("b", first.since_ms));
        health.record_answer();
        assert!(health.answered_ms().unwrap() >= last.at_ms);
        assert_eq!(health.last_failure(), Some(last), "an answer does not remove the last failure");
    }
}
