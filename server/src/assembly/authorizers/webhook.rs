//! Webhook authorizer: sends SubjectAccessReviews and caches the answers.
//!
//! Upstream rules: plugin/pkg/authorizer/webhook. No lock is held during a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use portico_auth::authz::conditions::{self, Condition};
use portico_auth::authz::review::{Answer, Spec, Version, is_short};
use portico_auth::authz::{Authorizer, Authorizing, Decision, MAX_ANSWERS, Rules};
use portico_kit::expiring_cache::ExpiringCache;
use portico_kit::tasks::TaskSet;
use portico_machinery::{Attributes, UserInfo};
use portico_registry::CallError;

use super::backend::{Calls, ReviewBackend};
use super::configuration::{FailurePolicy, WebhookConfiguration};
use super::metrics::{AuthorizationMetrics, Called, WebhookMetrics};

/// Webhook authorizer.
pub(super) struct Webhook {
    backend: ReviewBackend,
    version: Version,
    conditions: Vec<Condition>,
    on_failure: FailurePolicy,
    /// Cache lifetimes of the decision to allow, and of all other decisions.
    ttl: (Duration, Duration),
    answers: ExpiringCache<Arc<Answer>>,
    calls: Calls,
    metrics: WebhookMetrics,
    /// True if the last call failed: consecutive failures are logged once.
    failing: AtomicBool,
}

/// Pending call of the webhook; counts the call as canceled if it is dropped before the answer.
struct Asking<'a> {
    metrics: &'a WebhookMetrics,
    since: Option<Instant>,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if let Some(since) = self.since {
            self.metrics.called(Called::Canceled, since.elapsed());
        }
    }
}

/// Decision without a call of the webhook, or the review to send.
enum Known {
    Decided(Decision),
    /// Review to send, which is also the key of the cached answer.
    Ask(String),
}

impl Webhook {
    /// Creates an authorizer from its configuration.
    ///
    /// # Errors
    /// The kubeconfig or the match conditions are invalid.
    pub(super) fn new(
        name: &str,
        configuration: &WebhookConfiguration,
        calls: &Calls,
        metrics: &AuthorizationMetrics,
        tasks: &TaskSet,
    ) -> Result<Self, String> {
        let backend = ReviewBackend::read(&configuration.kube_config_file, configuration.timeout, tasks)?;
        let conditions = configuration.match_conditions.iter().map(|text| Condition::compile(text));
        Ok(Self {
            backend,
            version: configuration.version,
            conditions: conditions.collect::<Result<_, _>>()?,
            on_failure: configuration.failure_policy,
            ttl: (configuration.authorized_ttl, configuration.unauthorized_ttl),
            answers: ExpiringCache::new(MAX_ANSWERS),
            calls: Arc::clone(calls),
            metrics: metrics.of_webhook(name),
            failing: AtomicBool::new(false),
        })
    }

    fn known(&self, attributes: &Attributes) -> Known {
        if !self.conditions.is_empty() {
            let begun = Instant::now();
            let hold = conditions::hold(&self.conditions, attributes);
            self.metrics.conditions(&hold, begun.elapsed());
            match hold {
                Ok(true) => {}
                Ok(false) => return Known::Decided(Decision::no_opinion("")),
                Err(error) => return Known::Decided(self.on_failure.decision().with_error(error)),
            }
        }
        let question = Spec::of(attributes).to_json();
        match self.answers.get(&question, Instant::now()) {
            Some(answer) => Known::Decided(answer.decision()),
            None => Known::Ask(question),
        }
    }

    async fn ask(&self, attributes: &Attributes, question: &str) -> Decision {
        let mut last = Called::Error;
        let mut asking = Asking { metrics: &self.metrics, since: Some(Instant::now()) };
        let ended = |outcome: &Result<Bytes, CallError>, took| {
            last = self.called(outcome);
            self.metrics.called(last, took);
            asking.since = Some(Instant::now());
        };
        let answer = match self.calls.get() {
            Some(webhooks) => {
                let review = Spec::of(attributes).review(self.version);
                let answer = self.backend.ask(webhooks, review, ended).await;
                answer.map_err(|error| error.to_string()).and_then(|body| Answer::read(self.version, &body))
            }
            None => Err("webhooks cannot be called before the server has started".to_owned()),
        };
        asking.since = None;
        match answer {
            Ok(answer) => {
                self.failing.store(false, Ordering::Relaxed);
                let answer = Arc::new(answer);
                let (yes, other) = self.ttl;
                if is_short(attributes) {
                    let ttl = if answer.allowed { yes } else { other };
                    self.answers.keep(question, Arc::clone(&answer), Instant::now(), ttl);
                }
                answer.decision()
            }
            Err(error) => self.failed(error, last),
        }
    }

    fn called(&self, outcome: &Result<Bytes, CallError>) -> Called {
        match outcome {
            Ok(body) if Answer::read(self.version, body).is_ok() => Called::Success,
            Err(error) if error.is_timeout() => Called::Timeout,
            _ => Called::Error,
        }
    }

    /// Logs the first of consecutive failures as an error and the following ones at debug level.
    fn failed(&self, error: String, last: Called) -> Decision {
        if self.failing.swap(true, Ordering::Relaxed) {
            tracing::debug!(error, "Failed to make webhook authorizer request");
        } else {
            tracing::error!(error, "Failed to make webhook authorizer request");
        }
        if self.on_failure == FailurePolicy::NoOpinion {
            self.metrics.failed_open(last);
        }
        self.on_failure.decision().with_error(error)
    }
}

impl Authorizer for Webhook {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        match self.known(attributes) {
            Known::Decided(decision) => decision,
            Known::Ask(_) => Decision::ask(),
        }
    }

    fn decide<'a>(&'a self, attributes: &'a Attributes) -> Authorizing<'a> {
        Box::pin(async move {
            match self.known(attributes) {
                Known::Decided(decision) => decision,
                Known::Ask(question) => self.ask(attributes, &question).await,
            }
        })
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> Rules {
        let error = "webhook authorizer does not support user rule resolution".to_owned();
        Rules { incomplete: true, errors: vec![error], ..Rules::default() }
    }
}
