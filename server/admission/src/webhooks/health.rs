//! How the calls of a webhook have ended: for Explain, and so that a log names a failing webhook once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

/// See the module.
#[derive(Default)]
pub(crate) struct Health {
    /// When it answered last, in milliseconds since 1970; zero when it never did.
    answered_ms: AtomicU64,
    failure: Mutex<Option<Failing>>,
}

/// The last failure in a row of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failing {
    /// Why the call has failed.
    pub(crate) reason: String,
    /// When it failed, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// When the first call after the last answer failed.
    pub(crate) since_ms: u64,
}

impl Health {
    /// It has answered, whatever the answer was.
    pub(super) fn answered(&self) {
        self.answered_ms.store(now_ms(), Ordering::Relaxed);
    }

    /// A call has failed. Whether it is the first one since the last answer.
    pub(super) fn failed(&self, reason: &str) -> bool {
        let (mut failure, at_ms) = (self.failure.lock(), now_ms());
        let answered = self.answered_ms.load(Ordering::Relaxed);
        let before = failure.as_ref().filter(|failing| failing.at_ms >= answered);
        let since_ms = before.map_or(at_ms, |failing| failing.since_ms);
        let first = before.is_none();
        *failure = Some(Failing { reason: reason.to_owned(), at_ms, since_ms });
        first
    }

    /// When it answered last.
    pub(crate) fn answered_ms(&self) -> Option<u64> {
        Some(self.answered_ms.load(Ordering::Relaxed)).filter(|at| *at > 0)
    }

    /// The last failure, answered since or not.
    pub(crate) fn last_failure(&self) -> Option<Failing> {
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
    fn failures_in_a_row_began_with_the_first() {
        let health = Health::default();
        assert_eq!((health.answered_ms(), health.last_failure()), (None, None));
        assert!(health.failed("a"));
        let first = health.last_failure().unwrap();
        assert!(!health.failed("b"));
        let last = health.last_failure().unwrap();
        assert_eq!((last.reason.as_str(), last.since_ms), ("b", first.since_ms));
        health.answered();
        assert!(health.answered_ms().unwrap() >= last.at_ms);
        assert_eq!(health.last_failure(), Some(last), "what was wrong is known afterwards, too");
    }
}
