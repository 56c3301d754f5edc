//! The backend that decides about images, and how often it is asked when that fails (upstream's `GenericWebhook`).

use std::time::Duration;

use bytes::Bytes;
use portico_registry::{CallError, ClientConfig, WebhookCall, WebhookEndpoint, WebhookUsers, Webhooks};

/// For one call, from the first wait to the last byte.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often it is asked at most.
const CALLS: u32 = 5;
/// By how much each wait between two calls is longer than the one before.
const FACTOR: f64 = 1.5;
/// By how much of itself a wait is longer at most, so that not all servers ask at once.
const JITTER: f64 = 0.2;

/// Where the backend is, and as whom it is asked.
#[derive(Clone, Debug)]
pub struct ImageBackend {
    endpoint: WebhookEndpoint,
    users: WebhookUsers,
}

impl Default for ImageBackend {
    /// Nowhere.
    fn default() -> Self {
        Self::new(&ClientConfig::default(), WebhookUsers::default())
    }
}

impl ImageBackend {
    /// A backend that is asked as its user.
    #[must_use]
    pub fn new(config: &ClientConfig, users: WebhookUsers) -> Self {
        Self { endpoint: WebhookEndpoint::new(config, TIMEOUT), users }
    }

    /// Asks, again after a while where another call may go better.
    ///
    /// # Errors
    /// The last call's.
    pub(super) async fn ask(
        &self,
        webhooks: &Webhooks,
        question: Bytes,
        backoff: Duration,
    ) -> Result<Bytes, CallError> {
        let mut wait = backoff;
        let mut calls = 1;
        loop {
            let call = WebhookCall {
                endpoint: &self.endpoint,
                users: &self.users,
                body: question.clone(),
                answer_bytes: webhooks.limits().review_bytes,
            };
            match webhooks.post(call).await {
                Err(error) if error.is_transient() && calls < CALLS => {}
                outcome => return outcome,
            }
            tokio::time::sleep(wait.mul_f64(1.0 + JITTER * rand::random::<f64>())).await;
            wait = wait.mul_f64(FACTOR);
            calls += 1;
        }
    }
}
