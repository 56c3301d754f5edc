//! The backend that decides about images, and how often it is asked when that fails (upstream's `GenericWebhook`).

use std::time::Duration;

use bytes::Bytes;
use portico_registry::{CallError, ClientConfig, WebhookCall, WebhookEndpoint, WebhookUsers, Webhooks};

/// Time for a call of the image policy webhook.
///
/// Limit (Webhooks): the call fails.
const TIMEOUT: Duration = Duration::from_secs(30);
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
        let call = WebhookCall {
            endpoint: &self.endpoint,
            users: &self.users,
            body: question,
            answer_bytes: webhooks.limits().review_bytes,
        };
        webhooks.post_again(call, backoff, |_, _| {}).await
    }
}
