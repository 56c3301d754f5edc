//! Retries with jittered exponential backoff, for idempotent calls.

use std::time::Duration;

use rand::RngExt;
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// Retry policy of idempotent calls. Retries `UNAVAILABLE` and statuses with a `google.rpc.RetryInfo`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Retry {
    /// Maximum number of calls, including the first one.
    pub attempts: u32,
    /// Delay before the second call; doubles after each call.
    pub first_pause: Duration,
    /// Maximum delay.
    pub longest_pause: Duration,
}

impl Default for Retry {
    /// Five calls, with delays from 50 ms up to 2 s.
    fn default() -> Self {
        Self { attempts: 5, first_pause: Duration::from_millis(50), longest_pause: Duration::from_secs(2) }
    }
}

impl Retry {
    /// Calls until a call succeeds, fails with a status that is not retried, or the attempts are exhausted.
    ///
    /// # Errors
    /// The status of the last call.
    pub async fn run<T, F: Future<Output = Result<T, Status>>>(
        &self,
        mut call: impl FnMut() -> F,
    ) -> Result<T, Status> {
        let mut attempt = 1;
        loop {
            let status = match call().await {
                Ok(value) => return Ok(value),
                Err(status) if attempt >= self.attempts => return Err(status),
                Err(status) => status,
            };
            let Some(asked) = retry_delay(&status) else { return Err(status) };
            tokio::time::sleep(asked.max(self.delay(attempt))).await;
            attempt += 1;
        }
    }

    /// Returns the delay after this many failures: doubled each time, capped, with a random factor of 0.5 to 1.
    pub(super) fn delay(&self, failures: u32) -> Duration {
        let doubled = self
            .first_pause
            .saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX));
        doubled.min(self.longest_pause).mul_f64(rand::rng().random_range(0.5..=1.0))
    }
}

/// Returns the delay that the server requests, zero by default; `None` if the call should not be retried.
pub(super) fn retry_delay(status: &Status) -> Option<Duration> {
    let requested = status.get_details_retry_info().and_then(|r| r.retry_delay);
    match status.code() {
        Code::Unavailable => Some(requested.unwrap_or_default()),
        _ => requested,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const FAST: Retry =
        Retry { attempts: 3, first_pause: Duration::from_millis(1), longest_pause: Duration::from_millis(2) };

    #[tokio::test]
    async fn unavailable_is_retried_and_a_refusal_is_not() {
        for (code, calls) in [(Code::Unavailable, 3), (Code::NotFound, 1)] {
            let count = Cell::new(0);
            let result: Result<(), _> = FAST
                .run(|| async {
                    count.set(count.get() + 1);
                    Err(Status::new(code, ""))
                })
                .await;
            assert_eq!((result.unwrap_err().code(), count.get()), (code, calls));
        }
    }

    #[test]
    fn delays_grow_to_their_maximum() {
        let retry = Retry::default();
        assert!(retry.delay(1) <= Duration::from_millis(50));
        for failures in [8, 40, u32::MAX] {
            assert!(retry.delay(failures) <= retry.longest_pause);
        }
    }
}
