//! A backend that answers reviews, as a kubeconfig's current context says it.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use portico_kit::tasks::TaskSet;
use portico_registry::{CallError, WebhookCall, WebhookEndpoint, WebhookUsers, Webhooks};

use super::super::{image_backend, webhook_users};

/// The first wait before a failed call is repeated (upstream's `DefaultAuthWebhookRetryBackoff`).
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Size of the response of an authorization or token webhook.
///
/// Limit (Authentication and authorization, bytes): the call fails.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// The way to webhooks, once there is one.
pub(crate) type Calls = Arc<OnceLock<Webhooks>>;

/// Where it is, and as whom it is asked.
pub(crate) struct ReviewBackend {
    endpoint: WebhookEndpoint,
    users: WebhookUsers,
}

impl ReviewBackend {
    /// Reads the file and what it names; whether the backend answers is found out when it is asked.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub(crate) fn read(file: &Path, timeout: Duration, tasks: &TaskSet) -> Result<Self, String> {
        let failed = |reason: String| format!("{}: {reason}", file.display());
        let config = image_backend::config(file).map_err(failed)?;
        let users = webhook_users::read_current(file, tasks).map_err(|error| error.to_string())?;
        Ok(Self { endpoint: WebhookEndpoint::new(&config, timeout), users })
    }

    /// Asks, again where another call may go better.
    ///
    /// # Errors
    /// The last call's.
    pub(crate) async fn ask(
        &self,
        webhooks: &Webhooks,
        review: Vec<u8>,
        ended: impl FnMut(&Result<Bytes, CallError>, Duration) + Send,
    ) -> Result<Bytes, CallError> {
        let call = WebhookCall {
            endpoint: &self.endpoint,
            users: &self.users,
            body: review.into(),
            answer_bytes: MAX_ANSWER_BYTES,
        };
        webhooks.post_again(call, FIRST_WAIT, ended).await
    }
}
