//! Asking again where another call may go better (upstream's `WithExponentialBackoff`).

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{CallError, WebhookCall, Webhooks};

/// Calls of a webhook that cannot be connected to.
///
/// Limit (Webhooks): the last failure is reported.
const CALLS: u32 = 5;
/// By how much each wait between two calls is longer than the one before.
const FACTOR: f64 = 1.5;
/// By how much of itself a wait is longer at most, so that not all servers ask at once.
const JITTER: f64 = 0.2;

impl Webhooks {
    /// Asks, again after a while where another call may go better; `ended` sees each call's outcome and how long it took.
    ///
    /// # Errors
    /// The last call's.
    pub async fn post_again(
        &self,
        call: WebhookCall<'_>,
        first_wait: Duration,
        mut ended: impl FnMut(&Result<Bytes, CallError>, Duration) + Send,
    ) -> Result<Bytes, CallError> {
        let mut wait = first_wait;
        for _ in 1..CALLS {
            let begun = Instant::now();
            let outcome = self.post(call.clone()).await;
            ended(&outcome, begun.elapsed());
            match outcome {
                Err(error) if error.is_transient() => {}
                outcome => return outcome,
            }
            tokio::time::sleep(wait.mul_f64(1.0 + JITTER * rand::random::<f64>())).await;
            wait = wait.mul_f64(FACTOR);
        }
        let begun = Instant::now();
        let outcome = self.post(call).await;
        ended(&outcome, begun.elapsed());
        outcome
    }
}
