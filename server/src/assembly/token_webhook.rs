//! Webhook that authenticates bearer tokens (`--authentication-token-webhook-config-file`), with a cache of its answers.
//!
//! Upstream rules: plugin/pkg/authenticator/token/webhook. No lock is held during a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use portico_auth::authn::token_webhook::{
    self, AuthenticatedToken, AuthenticatedTokenFuture, RemoteTokenAuthenticator, TokenAnswerCache,
};
use portico_auth::authz::review::ReviewVersion;
use portico_kit::tasks::TaskSet;

use super::authorizers::{ReviewBackend, WebhooksCell};
use super::error::StartError;
use crate::settings::TokenWebhookSettings;

/// Time for a call of the token webhook.
///
/// `defaultRequestTimeout` of kube-apiserver: from the first wait to the last byte.
///
/// Limit (Authentication and authorization): the call fails.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Token webhook.
pub(super) struct TokenWebhook {
    backend: ReviewBackend,
    version: ReviewVersion,
    /// Audiences of this API, which apply to tokens that name none.
    audiences: Vec<String>,
    answers: TokenAnswerCache,
    webhooks: WebhooksCell,
    /// True if the last call failed: consecutive failures are logged once.
    failing: AtomicBool,
}

impl TokenWebhook {
    /// Creates the webhook from its settings.
    ///
    /// # Errors
    /// [`StartError::Authentication`] names the file.
    pub(super) fn new(
        settings: &TokenWebhookSettings,
        audiences: &[String],
        calls: &WebhooksCell,
        tasks: &TaskSet,
    ) -> Result<Self, StartError> {
        let backend = ReviewBackend::read(&settings.config_file, TIMEOUT, tasks);
        let answers = TokenAnswerCache::new(settings.cache_ttl);
        let no_key = |_| StartError::Authentication("cannot read random numbers".to_owned());
        Ok(Self {
            backend: backend.map_err(StartError::Authentication)?,
            version: settings.version,
            audiences: audiences.to_vec(),
            answers: answers.map_err(no_key)?,
            webhooks: Arc::clone(calls),
            failing: AtomicBool::new(false),
        })
    }

    async fn review(&self, token: &str, audiences: &[String]) -> Result<Option<AuthenticatedToken>, String> {
        let webhooks =
            self.webhooks.get().ok_or("webhooks cannot be called before the server has started")?;
        let review = token_webhook::encode_review(self.version, token, audiences);
        let body = self.backend.call(webhooks, review, |_, _| {}).await;
        let body = body.map_err(|error| self.log_failure(error.to_string()))?;
        self.failing.store(false, Ordering::Relaxed);
        token_webhook::parse_response(self.version, &body, audiences, &self.audiences)
    }

    /// Logs the first of consecutive failures as an error and the following ones at debug level.
    fn log_failure(&self, error: String) -> String {
        if self.failing.swap(true, Ordering::Relaxed) {
            tracing::debug!(error, "Failed to make webhook authenticator request");
        } else {
            tracing::error!(error, "Failed to make webhook authenticator request");
        }
        error
    }
}

impl RemoteTokenAuthenticator for TokenWebhook {
    fn authenticate<'a>(&'a self, token: &'a str, audiences: &'a [String]) -> AuthenticatedTokenFuture<'a> {
        Box::pin(async move {
            let audiences = if audiences.is_empty() { &self.audiences } else { audiences };
            if let Some(cached) = self.answers.get(token, audiences, Instant::now()) {
                return Ok(cached);
            }
            let answer = self.review(token, audiences).await?;
            self.answers.insert(token, audiences, answer.clone(), Instant::now());
            Ok(answer)
        })
    }
}
