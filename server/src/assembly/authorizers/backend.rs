//! Backend of reviews, as defined by the current context of a kubeconfig.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use portico_kit::tasks::TaskSet;
use portico_registry::{CallError, WebhookCall, WebhookEndpoint, WebhookUsers, Webhooks};

use super::super::{image_backend, webhook_users};

/// Delay before the first retry (upstream's `DefaultAuthWebhookRetryBackoff`).
const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
/// Size of the response of an authorization or token webhook.
///
/// Limit (Authentication and authorization, bytes): the call fails.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Client for webhooks, set once the registry exists.
pub(crate) type WebhooksCell = Arc<OnceLock<Webhooks>>;

/// Endpoint of the backend, and the users as which it is called.
pub(crate) struct ReviewBackend {
    endpoint: WebhookEndpoint,
    users: WebhookUsers,
}

impl ReviewBackend {
    /// Reads a kubeconfig and the files that it names. The backend is not called.
    ///
    /// # Errors
    /// The file is invalid.
    pub(crate) fn read(file: &Path, timeout: Duration, tasks: &TaskSet) -> Result<Self, String> {
        let failed = |reason: String| format!("{}: {reason}", file.display());
        let config = image_backend::config(file).map_err(failed)?;
        let users = webhook_users::read_current(file, tasks).map_err(|error| error.to_string())?;
        Ok(Self { endpoint: WebhookEndpoint::new(&config, timeout), users })
    }

    /// Calls the backend, with retries after errors that may be temporary.
    ///
    /// # Errors
    /// The error of the last call.
    pub(crate) async fn call(
        &self,
        webhooks: &Webhooks,
        review: Vec<u8>,
        on_attempt: impl FnMut(&Result<Bytes, CallError>, Duration) + Send,
    ) -> Result<Bytes, CallError> {
        let call = WebhookCall {
            endpoint: &self.endpoint,
            users: &self.users,
            body: review.into(),
            max_response_bytes: MAX_ANSWER_BYTES,
        };
        webhooks.post_with_retries(call, INITIAL_BACKOFF, on_attempt).await
    }
}
