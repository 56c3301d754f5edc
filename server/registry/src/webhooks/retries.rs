//! Retries of calls (upstream's `WithExponentialBackoff`).

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{CallError, WebhookCall, Webhooks};

/// Calls of a webhook that cannot be connected to.
///
/// Limit (Webhooks): the last failure is reported.
const CALLS: u32 = 5;
/// Factor by which the wait between two calls grows.
const FACTOR: f64 = 1.5;
/// Maximum random increase of a wait, relative to its duration, so that servers do not retry simultaneously.
const JITTER: f64 = 0.2;

impl Webhooks {
    /// Sends a request, and retries after transient failures. `ended` receives the outcome and duration of each call.
    ///
    /// # Errors
    /// Error of the last call.
    pub async fn post_with_retries(
        &self,
        call: WebhookCall<'_>,
        first_wait: Duration,
        mut on_end: impl FnMut(&Result<Bytes, CallError>, Duration) + Send,
    ) -> Result<Bytes, CallError> {
        let mut wait = first_wait;
        for _ in 1..CALLS {
            let start = Instant::now();
            let outcome = self.post(call.clone()).await;
            on_end(&outcome, start.elapsed());
            match outcome {
                Err(error) if error.is_transient() => {}
                outcome => return outcome,
            }
            tokio::time::sleep(wait.mul_f64(1.0 + JITTER * rand::random::<f64>())).await;
            wait = wait.mul_f64(FACTOR);
        }
        let start = Instant::now();
        let outcome = self.post(call).await;
        on_end(&outcome, start.elapsed());
        outcome
    }
}
