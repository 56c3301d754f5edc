//! A circuit breaker for one target: after some failures in a row only one probe in each window may try it.
//!
//! A check costs two atomic loads. It must not know what a try is, nor what a failure says.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How the last try ended.
#[derive(Clone, Debug)]
pub struct Outcome<F> {
    /// Why it failed; nothing when it did not.
    pub failed: Option<F>,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// The first of the failures in a row, or the first success after them, in milliseconds since 1970.
    pub since_ms: u64,
}

/// When a circuit opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Failures in a row that open it.
    pub failures: u32,
    /// How long it stays open at first; doubled for each failed probe.
    pub open: Duration,
    /// The longest that it stays open between two probes.
    pub open_max: Duration,
}

/// See the module. `F` is what a failure says.
#[derive(Debug)]
pub struct Circuit<F> {
    limits: Limits,
    failures: AtomicU32,
    /// No try before this time, on [`now_ms`]'s clock.
    open_until: AtomicU64,
    last: Mutex<Option<Outcome<F>>>,
}

impl<F: Clone> Circuit<F> {
    /// Closed: nothing was tried yet.
    pub fn new(limits: Limits) -> Self {
        let limits = Limits { failures: limits.failures.max(1), ..limits };
        Self { limits, failures: AtomicU32::new(0), open_until: AtomicU64::new(0), last: Mutex::new(None) }
    }

    /// Whether a try may start. While open, one caller in each window is let through as the probe.
    pub fn allows(&self) -> bool {
        let failures = self.failures.load(Ordering::Relaxed);
        if failures < self.limits.failures {
            return true;
        }
        let (until, now) = (self.open_until.load(Ordering::Acquire), now_ms());
        let next = now + self.window_ms(failures);
        now >= until
            && self.open_until.compare_exchange(until, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Whether so many tries have failed in a row that only probes are allowed.
    pub fn is_open(&self) -> bool {
        self.failures.load(Ordering::Relaxed) >= self.limits.failures
    }

    /// A try has succeeded: the circuit is closed.
    pub fn reached(&self) {
        let failing = self.failures.swap(0, Ordering::Relaxed) > 0;
        let mut last = self.last.lock();
        if failing || last.is_none() {
            let now = unix_ms();
            *last = Some(Outcome { failed: None, at_ms: now, since_ms: now });
        }
    }

    /// A try has failed.
    pub fn failed(&self, failure: F) {
        let failures = self.failures.load(Ordering::Relaxed).saturating_add(1);
        self.failures.store(failures, Ordering::Relaxed);
        self.open_until.store(now_ms() + self.window_ms(failures), Ordering::Release);
        let (mut last, now) = (self.last.lock(), unix_ms());
        let before = last.as_ref().filter(|last| last.failed.is_some());
        let since_ms = before.map_or(now, |last| last.since_ms);
        *last = Some(Outcome { failed: Some(failure), at_ms: now, since_ms });
    }

    /// Lets the next caller probe: what is tried has changed.
    pub fn probe_soon(&self) {
        self.open_until.store(0, Ordering::Release);
    }

    /// How many tries have failed in a row.
    pub fn failures(&self) -> u32 {
        self.failures.load(Ordering::Relaxed)
    }

    /// When the next probe is let through, in milliseconds since 1970; nothing while it is closed.
    pub fn probe_at_ms(&self) -> Option<u64> {
        self.is_open().then(|| START.1.saturating_add(self.open_until.load(Ordering::Acquire)))
    }

    /// How the last try ended: of successes in a row the first one.
    pub fn last(&self) -> Option<Outcome<F>> {
        self.last.lock().clone()
    }

    /// Doubles with each failure beyond those that open the circuit.
    fn window_ms(&self, failures: u32) -> u64 {
        let doublings = failures.saturating_sub(self.limits.failures).min(16);
        let window = self.limits.open.saturating_mul(1 << doublings).min(self.limits.open_max);
        u64::try_from(window.as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

/// When this process first looked: on its own clock, and in milliseconds since 1970.
static START: LazyLock<(Instant, u64)> = LazyLock::new(|| (Instant::now(), unix_ms()));

/// Milliseconds on a clock that starts with the process: what fits an atomic.
fn now_ms() -> u64 {
    u64::try_from(START.0.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds since 1970.
fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circuit(failures: u32, open: u64, open_max: u64) -> Circuit<&'static str> {
        let [open, open_max] = [open, open_max].map(Duration::from_millis);
        Circuit::new(Limits { failures, open, open_max })
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_failures_in_a_row_and_lets_one_probe_through() {
        let circuit = circuit(2, 100, 1000);
        assert!(circuit.allows());
        circuit.failed("refused");
        assert!(circuit.allows());
        circuit.failed("refused");
        assert!(!circuit.allows());
        tokio::time::advance(Duration::from_millis(101)).await;
        assert!(circuit.allows());
        assert!(!circuit.allows(), "the second caller of the window is no probe");
        assert!(circuit.probe_at_ms().is_some_and(|at| at > 0));
        circuit.reached();
        assert_eq!(circuit.probe_at_ms(), None);
        assert!(circuit.allows() && circuit.allows());
    }

    #[tokio::test(start_paused = true)]
    async fn its_window_doubles_up_to_a_limit() {
        let circuit = circuit(1, 100, 350);
        let windows = [1, 2, 3, 4, 60].map(|failures| circuit.window_ms(failures));
        assert_eq!(windows, [100, 200, 350, 350, 350]);
    }

    #[test]
    fn a_verdict_is_kept_until_it_changes() {
        let circuit = circuit(1, 100, 1000);
        circuit.reached();
        let at = circuit.last().unwrap().at_ms;
        circuit.reached();
        assert_eq!(circuit.last().unwrap().at_ms, at);
        circuit.failed("refused");
        assert_eq!(circuit.last().unwrap().failed, Some("refused"));
        assert_eq!(circuit.failures(), 1);
        let since = circuit.last().unwrap().since_ms;
        circuit.failed("again");
        let last = circuit.last().unwrap();
        assert_eq!(
            (last.failed, last.since_ms),
            (Some("again"), since),
            "failures in a row began with the first"
        );
        assert!(circuit.is_open());
    }
}
