//! Upstream's metrics of authorizers.

use std::time::Duration;

use portico_kit::metrics::{Desc, HistogramVec, Registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

type Labels<const N: usize> = [(&'static str, String); N];

/// Upper bounds of the histogram of webhook calls, in seconds (`DefBuckets` of Prometheus).
const CALL_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Upper bounds of the histogram of match conditions, in seconds.
const CONDITION_BUCKETS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];

/// Result of a webhook call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallResult {
    /// The webhook returned a review.
    Success,
    /// The call timed out.
    Timeout,
    /// The call failed, or the response is not a review.
    Error,
    /// The caller no longer waits for the answer.
    Canceled,
}

impl CallResult {
    fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Timeout => "timeout",
            Self::Error => "error",
            Self::Canceled => "canceled",
        }
    }
}

/// Metrics of all authorizers.
#[derive(Clone)]
pub(super) struct AuthorizationMetrics {
    decisions: Family<Labels<3>, Counter>,
    calls: Family<Labels<2>, Counter>,
    durations: HistogramVec<Labels<2>>,
    failed_open: Family<Labels<2>, Counter>,
    condition_errors: Family<Labels<2>, Counter>,
    exclusions: Family<Labels<2>, Counter>,
    condition_durations: HistogramVec<Labels<2>>,
}

/// Metrics of one webhook.
pub(super) struct WebhookMetrics {
    name: String,
    all: AuthorizationMetrics,
}

impl AuthorizationMetrics {
    /// Registers the metrics of the process.
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            decisions: registry.counter_vec(Desc::counter(
                "apiserver_authorization_decisions_total",
                &["decision", "name", "type"],
                "[ALPHA] Total number of terminal decisions made by an authorizer split by \
                 authorizer type, name, and decision.",
            )),
            calls: registry.counter_vec(Desc::counter(
                "apiserver_authorization_webhook_evaluations_total",
                &["name", "result"],
                "[ALPHA] Round-trips to authorization webhooks.",
            )),
            durations: registry.histogram_vec(
                Desc::histogram(
                    "apiserver_authorization_webhook_duration_seconds",
                    &["name", "result"],
                    "[ALPHA] Request latency in seconds.",
                ),
                &CALL_BUCKETS,
            ),
            failed_open: registry.counter_vec(Desc::counter(
                "apiserver_authorization_webhook_evaluations_fail_open_total",
                &["name", "result"],
                "[ALPHA] NoOpinion results due to webhook timeout or error.",
            )),
            condition_errors: registry.counter_vec(Desc::counter(
                "apiserver_authorization_match_condition_evaluation_errors_total",
                &["name", "type"],
                "[ALPHA] Total number of errors when an authorization webhook encounters a \
                 match condition error split by authorizer type and name.",
            )),
            exclusions: registry.counter_vec(Desc::counter(
                "apiserver_authorization_match_condition_exclusions_total",
                &["name", "type"],
                "[ALPHA] Total number of exclusions when an authorization webhook is skipped \
                 because match conditions exclude it.",
            )),
            condition_durations: registry.histogram_vec(
                Desc::histogram(
                    "apiserver_authorization_match_condition_evaluation_seconds",
                    &["name", "type"],
                    "[ALPHA] Authorization match condition evaluation time in seconds, split by \
                     authorizer type and name.",
                ),
                &CONDITION_BUCKETS,
            ),
        }
    }

    /// Returns the counter for decisions of one kind by one authorizer.
    pub(super) fn decisions(&self, ty: &str, name: &str, decision: &str) -> Counter {
        let labels = [("type", ty.to_owned()), ("name", name.to_owned()), ("decision", decision.to_owned())];
        self.decisions.get_or_create(&labels).clone()
    }

    /// Returns the metrics of the named webhook.
    pub(super) fn for_webhook(&self, name: &str) -> WebhookMetrics {
        WebhookMetrics { name: name.to_owned(), all: self.clone() }
    }
}

impl WebhookMetrics {
    /// Counts a call and measures its duration.
    pub(super) fn observe_call(&self, result: CallResult, duration: Duration) {
        let labels = self.result_labels(result);
        self.all.calls.get_or_create(&labels).inc();
        self.all.durations.get_or_create(&labels).observe(duration.as_secs_f64());
    }

    /// Counts a failed call after which the next authorizers decide.
    pub(super) fn count_fail_open(&self, result: CallResult) {
        self.all.failed_open.get_or_create(&self.result_labels(result)).inc();
    }

    /// Counts an evaluation of match conditions.
    pub(super) fn observe_conditions(&self, match_result: &Result<bool, String>, duration: Duration) {
        let labels = [("type", "Webhook".to_owned()), ("name", self.name.clone())];
        self.all.condition_durations.get_or_create(&labels).observe(duration.as_secs_f64());
        match match_result {
            Ok(true) => {}
            Ok(false) => drop(self.all.exclusions.get_or_create(&labels).inc()),
            Err(_) => drop(self.all.condition_errors.get_or_create(&labels).inc()),
        }
    }

    fn result_labels(&self, result: CallResult) -> Labels<2> {
        [("name", self.name.clone()), ("result", result.name().to_owned())]
    }
}
