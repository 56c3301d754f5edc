//! Exponential backoff with jitter and a maximum, for one retried operation or per key.
//!
//! Computes durations and never sleeps. Does not depend on the operation that is retried.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;

/// Parameters of an exponential backoff.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackoffPolicy {
    /// First wait.
    pub base: Duration,
    /// Maximum of a wait, before jitter.
    pub max: Duration,
    /// Ratio of a wait to the previous one.
    pub factor: f64,
    /// Maximum random addition, as a fraction of the wait: 0.0 = no jitter, 1.0 = up to double the wait.
    pub jitter: f64,
}

impl BackoffPolicy {
    /// Failure limiter of controllers: 5 ms, doubling, up to 1000 s, no jitter (client-go's default).
    pub const CONTROLLER: Self = Self::new(Duration::from_millis(5), Duration::from_secs(1000), 2.0, 0.0);
    /// Reconnection of streams: 100 ms, doubling, up to 10 s, with half jitter.
    pub const RECONNECT: Self = Self::new(Duration::from_millis(100), Duration::from_secs(10), 2.0, 0.5);

    /// Retries of a failing `accept` (no descriptors available): 5 ms, doubling, up to 1 s, no jitter.
    pub const ACCEPT: Self = Self::new(Duration::from_millis(5), Duration::from_secs(1), 2.0, 0.0);

    /// Returns a policy of these values.
    pub const fn new(base: Duration, max: Duration, factor: f64, jitter: f64) -> Self {
        Self { base, max, factor, jitter }
    }

    /// Returns the wait after `failures` earlier failures, without jitter.
    pub fn wait(&self, failures: u32) -> Duration {
        let exponent = i32::try_from(failures).unwrap_or(i32::MAX);
        let seconds = self.base.as_secs_f64() * self.factor.powi(exponent);
        // Also catches infinity and NaN.
        if seconds < self.max.as_secs_f64() { Duration::from_secs_f64(seconds) } else { self.max }
    }

    fn jittered(&self, wait: Duration) -> Duration {
        if self.jitter > 0.0 { wait.mul_f64(1.0 + rand::random::<f64>() * self.jitter) } else { wait }
    }
}

/// Backoff state of one retried operation.
#[derive(Debug, Clone)]
pub struct Backoff {
    policy: BackoffPolicy,
    failures: u32,
}

impl Backoff {
    /// Returns a backoff without failures.
    pub fn new(policy: BackoffPolicy) -> Self {
        Self { policy, failures: 0 }
    }

    /// Returns the next wait, with jitter, and counts a failure.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.policy.jittered(self.policy.wait(self.failures));
        self.failures = self.failures.saturating_add(1);
        wait
    }

    /// Returns the wait after an attempt: `period` if it succeeded, otherwise a wait that grows with each failure.
    pub fn wait_after(&mut self, succeeded: bool, period: Duration) -> Duration {
        if !succeeded {
            return self.next_wait();
        }
        self.reset();
        period
    }

    /// Resets the backoff after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Returns the number of failures since the last reset.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

/// Failure limiter per key. Stores one counter per failing key; [`KeyLimiter::forget`] frees it.
#[derive(Debug)]
pub struct KeyLimiter<K> {
    policy: BackoffPolicy,
    failures: Mutex<HashMap<K, u32>>,
}

impl<K: Eq + Hash + Clone> KeyLimiter<K> {
    /// Returns a limiter without failures.
    pub fn new(policy: BackoffPolicy) -> Self {
        Self { policy, failures: Mutex::default() }
    }

    /// Counts one failure of `key` and returns the wait before the next attempt.
    pub fn when(&self, key: &K) -> Duration {
        let mut failures = self.failures.lock();
        let count = match failures.get_mut(key) {
            Some(count) => count,
            None => failures.entry(key.clone()).or_insert(0),
        };
        let wait = self.policy.wait(*count);
        *count = count.saturating_add(1);
        drop(failures);
        self.policy.jittered(wait)
    }

    /// Removes the counter of a key that succeeded or no longer exists.
    pub fn forget(&self, key: &K) {
        self.failures.lock().remove(key);
    }

    /// Returns the number of failures of a key since it was forgotten.
    pub fn failures(&self, key: &K) -> u32 {
        self.failures.lock().get(key).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn waits_double_up_to_the_cap_and_start_again_after_a_reset() {
        let mut backoff =
            Backoff::new(BackoffPolicy { max: Duration::from_millis(18), ..BackoffPolicy::CONTROLLER });
        let waits: Vec<u128> = (0..4).map(|_| backoff.next_wait().as_millis()).collect();
        assert_eq!(waits, [5, 10, 18, 18]);
        backoff.reset();
        assert_eq!(backoff.next_wait().as_millis(), 5);
        let period = Duration::from_secs(1);
        let waits = [true, false, false, true, false].map(|ok| backoff.wait_after(ok, period).as_millis());
        assert_eq!(waits, [1000, 5, 10, 1000, 5]);
    }

    #[test]
    fn keys_do_not_wait_for_each_other() {
        let limiter = KeyLimiter::new(BackoffPolicy::CONTROLLER);
        limiter.when(&"a");
        assert_eq!(limiter.when(&"a").as_millis(), 10);
        assert_eq!(limiter.when(&"b").as_millis(), 5);
        limiter.forget(&"a");
        assert_eq!((limiter.failures(&"a"), limiter.failures(&"b")), (0, 1));
    }

    proptest! {
        #[test]
        fn a_wait_is_between_the_base_and_the_jittered_cap(failures in 0u32..5000, jitter in 0.0f64..1.0) {
            let policy = BackoffPolicy { jitter, ..BackoffPolicy::RECONNECT };
            let wait = policy.jittered(policy.wait(failures));
            prop_assert!(wait >= policy.base && wait <= policy.max.mul_f64(1.0 + jitter));
        }
    }
}
