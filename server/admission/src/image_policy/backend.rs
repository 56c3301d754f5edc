//! Backend of ImagePolicyWebhook, with retries (upstream's `GenericWebhook`).

use std::time::Duration;

use bytes::Bytes;
use portico_registry::{CallError, ClientConfig, WebhookCall, WebhookEndpoint, WebhookUsers, Webhooks};

/// Time for a call of the image policy webhook.
///
/// Limit (Webhooks): the call fails.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Endpoint of the backend, and the users as which it is called.
#[derive(Clone, Debug)]
pub struct ImageBackend {
    endpoint: WebhookEndpoint,
    users: WebhookUsers,
}

impl Default for ImageBackend {
    /// Backend without an endpoint.
    fn default() -> Self {
        Self::new(&ClientConfig::default(), WebhookUsers::default())
    }
}

impl ImageBackend {
    /// Creates a backend that is called with the credentials in `users`.
    #[must_use]
    pub fn new(config: &ClientConfig, users: WebhookUsers) -> Self {
        Self { endpoint: WebhookEndpoint::new(config, TIMEOUT), users }
    }

    /// Calls the backend, with retries after errors that may be temporary.
    ///
    /// # Errors
    /// The error of the last call.
    pub(super) async fn call(
        &self,
        webhooks: &Webhooks,
        body: Bytes,
        backoff: Duration,
    ) -> Result<Bytes, CallError> {
        let call = WebhookCall {
            endpoint: &self.endpoint,
            users: &self.users,
            body,
            max_response_bytes: webhooks.limits().max_review_bytes,
        };
        webhooks.post_with_retries(call, backoff, |_, _| {}).await
    }
}
