//! Webhook authorizer: sends SubjectAccessReviews and caches the answers.
//!
//! Upstream rules: plugin/pkg/authorizer/webhook. No lock is held during a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use portico_auth::authz::conditions::{self, MatchCondition};
use portico_auth::authz::review::{ReviewAnswer, ReviewSpec, ReviewVersion, is_cacheable};
use portico_auth::authz::{Authorizer, Decision, DecisionFuture, MAX_CACHED_ANSWERS, UserRules};
use portico_kit::expiring_cache::ExpiringCache;
use portico_kit::tasks::TaskSet;
use portico_machinery::{Attributes, UserInfo};
use portico_registry::CallError;

use super::backend::{ReviewBackend, WebhooksCell};
use super::configuration::{FailurePolicy, WebhookConfiguration};
use super::metrics::{AuthorizationMetrics, CallResult, WebhookMetrics};

/// Webhook authorizer.
pub(super) struct Webhook {
    backend: ReviewBackend,
    version: ReviewVersion,
    conditions: Vec<MatchCondition>,
    on_failure: FailurePolicy,
    /// Cache lifetimes of the decision to allow, and of all other decisions.
    ttl: (Duration, Duration),
    answers: ExpiringCache<Arc<ReviewAnswer>>,
    webhooks: WebhooksCell,
    metrics: WebhookMetrics,
    /// True if the last call failed: consecutive failures are logged once.
    failing: AtomicBool,
}

/// Pending call of the webhook; counts the call as canceled if it is dropped before the answer.
struct PendingCall<'a> {
    metrics: &'a WebhookMetrics,
    since: Option<Instant>,
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if let Some(since) = self.since {
            self.metrics.observe_call(CallResult::Canceled, since.elapsed());
        }
    }
}

/// Decision without a call of the webhook, or the review to send.
enum CachedDecision {
    Decided(Decision),
    /// Review to send, which is also the key of the cached answer.
    Miss(String),
}

impl Webhook {
    /// Creates an authorizer from its configuration.
    ///
    /// # Errors
    /// The kubeconfig or the match conditions are invalid.
    pub(super) fn new(
        name: &str,
        configuration: &WebhookConfiguration,
        calls: &WebhooksCell,
        metrics: &AuthorizationMetrics,
        tasks: &TaskSet,
    ) -> Result<Self, String> {
        let backend = ReviewBackend::read(&configuration.kube_config_file, configuration.timeout, tasks)?;
        let conditions = configuration.match_conditions.iter().map(|text| MatchCondition::compile(text));
        Ok(Self {
            backend,
            version: configuration.version,
            conditions: conditions.collect::<Result<_, _>>()?,
            on_failure: configuration.failure_policy,
            ttl: (configuration.authorized_ttl, configuration.unauthorized_ttl),
            answers: ExpiringCache::new(MAX_CACHED_ANSWERS),
            webhooks: Arc::clone(calls),
            metrics: metrics.for_webhook(name),
            failing: AtomicBool::new(false),
        })
    }

    fn lookup(&self, attributes: &Attributes) -> CachedDecision {
        if !self.conditions.is_empty() {
            let started = Instant::now();
            let match_result = conditions::all_hold(&self.conditions, attributes);
            self.metrics.observe_conditions(&match_result, started.elapsed());
            match match_result {
                Ok(true) => {}
                Ok(false) => return CachedDecision::Decided(Decision::no_opinion("")),
                Err(error) => return CachedDecision::Decided(self.on_failure.decision().with_error(error)),
            }
        }
        let spec_json = ReviewSpec::from_attributes(attributes).to_json();
        match self.answers.get(&spec_json, Instant::now()) {
            Some(answer) => CachedDecision::Decided(answer.decision()),
            None => CachedDecision::Miss(spec_json),
        }
    }

    async fn call(&self, attributes: &Attributes, cache_key: &str) -> Decision {
        let mut last = CallResult::Error;
        let mut asking = PendingCall { metrics: &self.metrics, since: Some(Instant::now()) };
        let observe = |outcome: &Result<Bytes, CallError>, duration| {
            last = self.call_result(outcome);
            self.metrics.observe_call(last, duration);
            asking.since = Some(Instant::now());
        };
        let answer = match self.webhooks.get() {
            Some(webhooks) => {
                let review = ReviewSpec::from_attributes(attributes).encode_review(self.version);
                let answer = self.backend.call(webhooks, review, observe).await;
                answer
                    .map_err(|error| error.to_string())
                    .and_then(|body| ReviewAnswer::parse(self.version, &body))
            }
            None => Err("webhooks cannot be called before the server has started".to_owned()),
        };
        asking.since = None;
        match answer {
            Ok(answer) => {
                self.failing.store(false, Ordering::Relaxed);
                let answer = Arc::new(answer);
                let (authorized_ttl, unauthorized_ttl) = self.ttl;
                if is_cacheable(attributes) {
                    let ttl = if answer.allowed { authorized_ttl } else { unauthorized_ttl };
                    self.answers.insert(cache_key, Arc::clone(&answer), Instant::now(), ttl);
                }
                answer.decision()
            }
            Err(error) => self.handle_failure(error, last),
        }
    }

    fn call_result(&self, outcome: &Result<Bytes, CallError>) -> CallResult {
        match outcome {
            Ok(body) if ReviewAnswer::parse(self.version, body).is_ok() => CallResult::Success,
            Err(error) if error.is_timeout() => CallResult::Timeout,
            _ => CallResult::Error,
        }
    }

    /// Logs the first of consecutive failures as an error and the following ones at debug level.
    fn handle_failure(&self, error: String, last: CallResult) -> Decision {
        if self.failing.swap(true, Ordering::Relaxed) {
            tracing::debug!(error, "Failed to make webhook authorizer request");
        } else {
            tracing::error!(error, "Failed to make webhook authorizer request");
        }
        if self.on_failure == FailurePolicy::NoOpinion {
            self.metrics.count_fail_open(last);
        }
        self.on_failure.decision().with_error(error)
    }
}

impl Authorizer for Webhook {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        match self.lookup(attributes) {
            CachedDecision::Decided(decision) => decision,
            CachedDecision::Miss(_) => Decision::delegate(),
        }
    }

    fn decide<'a>(&'a self, attributes: &'a Attributes) -> DecisionFuture<'a> {
        Box::pin(async move {
            match self.lookup(attributes) {
                CachedDecision::Decided(decision) => decision,
                CachedDecision::Miss(spec_json) => self.call(attributes, &spec_json).await,
            }
        })
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> UserRules {
        let error = "webhook authorizer does not support user rule resolution".to_owned();
        UserRules { incomplete: true, errors: vec![error], ..UserRules::default() }
    }
}
