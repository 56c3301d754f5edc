//! A circuit breaker for one target: after some failures in a row only one probe in each window may dial it.
//!
//! A check costs two atomic loads. It must not know what a dial is.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::clock::{now_ms, unix_ms};
use crate::stage::Stage;

/// How the last dial to a target ended.
#[derive(Clone, Debug)]
pub(super) struct DialOutcome {
    pub(super) failed: Option<(Stage, String)>,
    pub(super) at_ms: u64,
}

#[derive(Debug)]
pub(super) struct Circuit {
    threshold: u32,
    open: Duration,
    open_max: Duration,
    failures: AtomicU32,
    /// No dial before this time, on [`now_ms`]'s clock.
    open_until: AtomicU64,
    last: Mutex<Option<DialOutcome>>,
}

impl Circuit {
    pub(super) fn new(threshold: u32, open: Duration, open_max: Duration) -> Self {
        Self {
            threshold: threshold.max(1),
            open,
            open_max,
            failures: AtomicU32::new(0),
            open_until: AtomicU64::new(0),
            last: Mutex::new(None),
        }
    }

    /// Whether a dial may start. While open, one caller in each window is let through as the probe.
    pub(super) fn allows(&self) -> bool {
        let failures = self.failures.load(Ordering::Relaxed);
        if failures < self.threshold {
            return true;
        }
        let (until, now) = (self.open_until.load(Ordering::Acquire), now_ms());
        let next = now + self.window_ms(failures);
        now >= until
            && self.open_until.compare_exchange(until, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(super) fn reached(&self) {
        let failing = self.failures.swap(0, Ordering::Relaxed) > 0;
        let mut last = self.last.lock();
        if failing || last.is_none() {
            *last = Some(DialOutcome { failed: None, at_ms: unix_ms() });
        }
    }

    pub(super) fn failed(&self, stage: Stage, message: String) {
        let failures = self.failures.load(Ordering::Relaxed).saturating_add(1);
        self.failures.store(failures, Ordering::Relaxed);
        self.open_until.store(now_ms() + self.window_ms(failures), Ordering::Release);
        *self.last.lock() = Some(DialOutcome { failed: Some((stage, message)), at_ms: unix_ms() });
    }

    /// Lets the next caller probe: the target's route changed.
    pub(super) fn probe_soon(&self) {
        self.open_until.store(0, Ordering::Release);
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(super) fn last(&self) -> Option<DialOutcome> {
        self.last.lock().clone()
    }

    /// Doubles with each failure beyond the threshold.
    fn window_ms(&self, failures: u32) -> u64 {
        let doublings = failures.saturating_sub(self.threshold).min(16);
        let window = self.open.saturating_mul(1 << doublings).min(self.open_max);
        u64::try_from(window.as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(circuit: &Circuit) {
        circuit.failed(Stage::Dial, "refused".into());
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_failures_in_a_row_and_lets_one_probe_through() {
        let circuit = Circuit::new(2, Duration::from_millis(100), Duration::from_secs(1));
        assert!(circuit.allows());
        fail(&circuit);
        assert!(circuit.allows());
        fail(&circuit);
        assert!(!circuit.allows());
        tokio::time::advance(Duration::from_millis(101)).await;
        assert!(circuit.allows());
        assert!(!circuit.allows(), "the second caller of the window is no probe");
        circuit.reached();
        assert!(circuit.allows() && circuit.allows());
    }

    #[tokio::test(start_paused = true)]
    async fn its_window_doubles_up_to_a_limit() {
        let circuit = Circuit::new(1, Duration::from_millis(100), Duration::from_millis(350));
        let windows = [1, 2, 3, 4, 60].map(|failures| circuit.window_ms(failures));
        assert_eq!(windows, [100, 200, 350, 350, 350]);
    }

    #[test]
    fn a_verdict_is_kept_until_it_changes() {
        let circuit = Circuit::new(1, Duration::from_millis(100), Duration::from_secs(1));
        circuit.reached();
        let at = circuit.last().unwrap().at_ms;
        circuit.reached();
        assert_eq!(circuit.last().unwrap().at_ms, at);
        fail(&circuit);
        assert_eq!(circuit.last().unwrap().failed, Some((Stage::Dial, "refused".into())));
        assert_eq!(circuit.failures(), 1);
    }
}
