//! Webhook that authenticates bearer tokens (`--authentication-token-webhook-config-file`), with a cache of its answers.
//!
//! Upstream rules: plugin/pkg/authenticator/token/webhook. No lock is held during a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use portico_auth::authn::remote::{self, Authenticating, Known, RemoteTokens, TokenAnswers};
use portico_auth::authz::review::Version;
use portico_kit::tasks::TaskSet;

use super::authorizers::{Calls, ReviewBackend};
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
    version: Version,
    /// Audiences of this API, which apply to tokens that name none.
    audiences: Vec<String>,
    answers: TokenAnswers,
    calls: Calls,
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
        calls: &Calls,
        tasks: &TaskSet,
    ) -> Result<Self, StartError> {
        let backend = ReviewBackend::read(&settings.config_file, TIMEOUT, tasks);
        let answers = TokenAnswers::new(settings.cache_ttl);
        let no_key = |_| StartError::Authentication("cannot read random numbers".to_owned());
        Ok(Self {
            backend: backend.map_err(StartError::Authentication)?,
            version: settings.version,
            audiences: audiences.to_vec(),
            answers: answers.map_err(no_key)?,
            calls: Arc::clone(calls),
            failing: AtomicBool::new(false),
        })
    }

    async fn ask(&self, token: &str, audiences: &[String]) -> Result<Option<Known>, String> {
        let webhooks = self.calls.get().ok_or("webhooks cannot be called before the server has started")?;
        let review = remote::review(self.version, token, audiences);
        let body = self.backend.ask(webhooks, review, |_, _| {}).await;
        let body = body.map_err(|error| self.failed(error.to_string()))?;
        self.failing.store(false, Ordering::Relaxed);
        remote::answer(self.version, &body, audiences, &self.audiences)
    }

    /// Logs the first of consecutive failures as an error and the following ones at debug level.
    fn failed(&self, error: String) -> String {
        if self.failing.swap(true, Ordering::Relaxed) {
            tracing::debug!(error, "Failed to make webhook authenticator request");
        } else {
            tracing::error!(error, "Failed to make webhook authenticator request");
        }
        error
    }
}

impl RemoteTokens for TokenWebhook {
    fn authenticate<'a>(&'a self, token: &'a str, audiences: &'a [String]) -> Authenticating<'a> {
        Box::pin(async move {
            let audiences = if audiences.is_empty() { &self.audiences } else { audiences };
            if let Some(known) = self.answers.get(token, audiences, Instant::now()) {
                return Ok(known);
            }
            let answer = self.ask(token, audiences).await?;
            self.answers.keep(token, audiences, answer.clone(), Instant::now());
            Ok(answer)
        })
    }
}
