//! Circuit breaker for one target: after several failures in a row, only one probe per window is allowed.
//!
//! A check costs two atomic loads. Does not depend on the kind of attempt nor on the type of its failure.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Result of the last attempt.
#[derive(Clone, Debug)]
pub struct AttemptOutcome<F> {
    /// Failure, or `None` for a success.
    pub failure: Option<F>,
    /// Time of the attempt, in milliseconds since 1970.
    pub at_ms: u64,
    /// Time of the first failure of the current series, or of the first success after it, in milliseconds since 1970.
    pub since_ms: u64,
}

/// Number of failures that opens a circuit, and duration for which it stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitLimits {
    /// Number of failures in a row that opens the circuit.
    pub failures: u32,
    /// Time until the first probe of an open circuit; doubled after each failed probe.
    pub open: Duration,
    /// Maximum time between two probes.
    pub open_max: Duration,
}

/// Circuit breaker of one target. `F` describes a failure.
#[derive(Debug)]
pub struct Circuit<F> {
    limits: CircuitLimits,
    /// Failures in a row; written under the lock of `state`.
    failures: AtomicU32,
    /// Time of the next probe on the clock of [`now_ms`].
    probe_at: AtomicU64,
    state: Mutex<CircuitState<F>>,
}

#[derive(Debug)]
struct CircuitState<F> {
    last: Option<AttemptOutcome<F>>,
    /// Probes that failed since the circuit opened.
    failed_probes: u32,
    /// True from the start of a probe until the next outcome.
    is_probing: bool,
}

impl<F: Clone> Circuit<F> {
    /// Returns a closed circuit without an outcome.
    pub fn new(limits: CircuitLimits) -> Self {
        let limits = CircuitLimits { failures: limits.failures.max(1), ..limits };
        let state = CircuitState { last: None, failed_probes: 0, is_probing: false };
        let (failures, probe_at) = (AtomicU32::new(0), AtomicU64::new(0));
        Self { limits, failures, probe_at, state: Mutex::new(state) }
    }

    /// True if an attempt may start. While the circuit is open, one caller per window gets `true`, as the probe.
    pub fn allows(&self) -> bool {
        !self.is_open() || (now_ms() >= self.probe_at.load(Ordering::Acquire) && self.begin_probe())
    }

    /// Checks again under the lock: another caller may have begun the probe, or a success closed the circuit.
    fn begin_probe(&self) -> bool {
        let (mut state, now) = (self.state.lock(), now_ms());
        if !self.is_open() {
            return true;
        }
        if now < self.probe_at.load(Ordering::Acquire) {
            return false;
        }
        state.is_probing = true;
        self.probe_at.store(now + self.window_ms(state.failed_probes), Ordering::Release);
        true
    }

    /// True if so many attempts have failed in a row that only probes are allowed.
    pub fn is_open(&self) -> bool {
        self.failures() >= self.limits.failures
    }

    /// Records a successful attempt and closes the circuit.
    pub fn record_success(&self) {
        let mut state = self.state.lock();
        let failing = self.failures.swap(0, Ordering::AcqRel) > 0;
        (state.failed_probes, state.is_probing) = (0, false);
        if failing || state.last.is_none() {
            let now = unix_ms();
            state.last = Some(AttemptOutcome { failure: None, at_ms: now, since_ms: now });
        }
    }

    /// Records a failed attempt. While the circuit is open, only a failed probe moves the time of the next one: attempts that
    /// began before it opened may still fail.
    pub fn record_failure(&self, failure: F) {
        let mut state = self.state.lock();
        let failures = self.failures().saturating_add(1);
        let probe_failed = std::mem::take(&mut state.is_probing);
        state.failed_probes = state.failed_probes.saturating_add(u32::from(probe_failed));
        if probe_failed || failures == self.limits.failures {
            self.probe_at.store(now_ms() + self.window_ms(state.failed_probes), Ordering::Release);
        }
        // After `probe_at`, so that no caller sees the circuit open with an old time.
        self.failures.store(failures, Ordering::Release);
        let now = unix_ms();
        let before = state.last.as_ref().filter(|last| last.failure.is_some());
        let since_ms = before.map_or(now, |last| last.since_ms);
        state.last = Some(AttemptOutcome { failure: Some(failure), at_ms: now, since_ms });
    }

    /// Allows the next caller to probe at once, because the target has changed.
    pub fn probe_soon(&self) {
        self.probe_at.store(0, Ordering::Release);
    }

    /// Returns the number of failures in a row.
    pub fn failures(&self) -> u32 {
        self.failures.load(Ordering::Acquire)
    }

    /// Returns the time of the next probe in milliseconds since 1970, or `None` if the circuit is closed.
    pub fn probe_at_ms(&self) -> Option<u64> {
        self.is_open().then(|| CLOCK_START.1.saturating_add(self.probe_at.load(Ordering::Acquire)))
    }

    /// Returns the result of the last attempt. Of several successes in a row, the first one is returned.
    pub fn last(&self) -> Option<AttemptOutcome<F>> {
        self.state.lock().last.clone()
    }

    /// Returns the time between two probes after this number of failed probes.
    fn window_ms(&self, failed_probes: u32) -> u64 {
        let window = self.limits.open.saturating_mul(1 << failed_probes.min(16)).min(self.limits.open_max);
        u64::try_from(window.as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

/// Time at which this process first used a circuit: on the monotonic clock, and in milliseconds since 1970.
static CLOCK_START: LazyLock<(Instant, u64)> = LazyLock::new(|| (Instant::now(), unix_ms()));

/// Returns the milliseconds since [`CLOCK_START`], a number that fits into an atomic.
fn now_ms() -> u64 {
    u64::try_from(CLOCK_START.0.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Returns the milliseconds since 1970.
fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Times are in seconds: tests share the clock of the process, whose start may differ by some milliseconds.
    fn circuit(failures: u32, open: u64, open_max: u64) -> Circuit<&'static str> {
        let [open, open_max] = [open, open_max].map(Duration::from_secs);
        Circuit::new(CircuitLimits { failures, open, open_max })
    }

    async fn advance_clock(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_circuit_opens_after_consecutive_failures_and_allows_one_probe() {
        let circuit = circuit(2, 100, 1000);
        assert!(circuit.allows());
        circuit.record_failure("refused");
        assert!(circuit.allows());
        circuit.record_failure("refused");
        assert!(!circuit.allows());
        advance_clock(110).await;
        assert!(circuit.allows());
        assert!(!circuit.allows(), "the second caller of the window is no probe");
        assert!(circuit.probe_at_ms().is_some_and(|at| at > 0));
        circuit.record_success();
        assert_eq!(circuit.probe_at_ms(), None);
        assert!(circuit.allows() && circuit.allows());
    }

    #[tokio::test(start_paused = true)]
    async fn the_window_doubles_with_each_failed_probe_up_to_a_limit() {
        let circuit = circuit(2, 100, 350);
        (0..2).for_each(|_| circuit.record_failure("refused"));
        for window in [100, 200, 350, 350] {
            advance_clock(window - 10).await;
            assert!(!circuit.allows(), "{window}");
            advance_clock(20).await;
            assert!(circuit.allows(), "{window}");
            circuit.record_failure("refused");
        }
        circuit.record_success();
        (0..2).for_each(|_| circuit.record_failure("refused"));
        advance_clock(110).await;
        assert!(circuit.allows(), "a success resets the window");
    }

    #[tokio::test(start_paused = true)]
    async fn failures_of_requests_in_flight_do_not_prolong_the_window() {
        let circuit = circuit(2, 100, 1000);
        (0..50).for_each(|_| circuit.record_failure("reset"));
        advance_clock(90).await;
        (0..50).for_each(|_| circuit.record_failure("timed out"));
        assert!(!circuit.allows());
        advance_clock(20).await;
        assert!(circuit.allows(), "the window of the first failures is over");
        (0..50).for_each(|_| circuit.record_failure("reset"));
        advance_clock(210).await;
        assert!(circuit.allows(), "only the failed probe prolongs the window");
        assert_eq!(circuit.failures(), 150);
    }

    #[tokio::test(start_paused = true)]
    async fn an_unfinished_probe_does_not_block_the_next_one() {
        let circuit = circuit(1, 100, 1000);
        circuit.record_failure("refused");
        for _ in 0..3 {
            advance_clock(110).await;
            assert!(circuit.allows() && !circuit.allows());
        }
        circuit.probe_soon();
        assert!(circuit.allows() && !circuit.allows());
    }

    #[test]
    fn failures_at_the_same_time_are_all_counted() {
        let circuit = circuit(1, 100, 1000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| circuit.record_failure("refused")));
            }
        });
        assert_eq!(circuit.failures(), 40_000);
    }

    #[test]
    fn the_first_outcome_of_a_series_is_kept() {
        let circuit = circuit(1, 100, 1000);
        circuit.record_success();
        let at = circuit.last().unwrap().at_ms;
        circuit.record_success();
        assert_eq!(circuit.last().unwrap().at_ms, at);
        circuit.record_failure("refused");
        assert_eq!(circuit.last().unwrap().failure, Some("refused"));
        assert_eq!(circuit.failures(), 1);
        let since = circuit.last().unwrap().since_ms;
        circuit.record_failure("again");
        let last = circuit.last().unwrap();
        assert_eq!(
            (last.failure, last.since_ms),
            (Some("again"), since),
            "consecutive failures start with the first one"
        );
        assert!(circuit.is_open());
    }
}
