//! Upstream's metrics of admission webhooks and match conditions.

use std::sync::OnceLock;
use std::time::Duration;

use portico_kit::metrics::{Desc, Histogram, HistogramVec, Registry};
use portico_registry::Operation;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use crate::policy_metrics::PolicyMetrics;
use crate::step_metrics::{OPERATIONS, StepMetrics};

type Labels<const N: usize> = [(&'static str, String); N];

/// Upper bounds of the histograms of webhook calls, in seconds.
const CALL_BUCKETS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// Upper bounds of the histograms of match conditions, in seconds.
const CONDITION_BUCKETS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];
/// Maximum status code used as a label. Higher codes count as this one, which bounds the number of series.
const MAX_CODE: u16 = 600;

/// Metrics of admission.
pub(crate) struct Metrics {
    /// Metrics of steps and plugins.
    pub(crate) steps: StepMetrics,
    durations: HistogramVec<Labels<4>>,
    requests: Family<Labels<5>, Counter>,
    rejections: Family<Labels<5>, Counter>,
    failed_open: Family<Labels<2>, Counter>,
    exclusions: Family<Labels<4>, Counter>,
    condition_errors: Family<Labels<4>, Counter>,
    condition_durations: HistogramVec<Labels<4>>,
    /// Metrics of policies.
    pub(crate) policies: PolicyMetrics,
}

/// Metrics of the calls of one webhook that admitted requests, by operation. Created by the first such call.
#[derive(Default)]
pub(crate) struct AdmittedCallMetrics([OnceLock<(Histogram, Counter)>; OPERATIONS.len()]);

/// Labels of a webhook call or of match conditions.
#[derive(Clone, Copy)]
pub(crate) struct HookLabels<'a> {
    /// Name of the webhook or policy.
    pub(crate) name: &'a str,
    /// `admit`, `validating` or `validate`.
    pub(crate) step: &'static str,
    pub(crate) operation: &'static str,
}

/// Reason why a webhook call rejected a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorType {
    /// The webhook refused the request.
    None,
    /// The webhook could not be called.
    Calling,
    /// The response of the webhook could not be applied.
    Server,
}

impl Metrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        Self {
            steps: StepMetrics::new(registry),
            durations: registry.histogram_vec(
                Desc::histogram(
                    "apiserver_admission_webhook_admission_duration_seconds",
                    &["name", "operation", "rejected", "type"],
                    "[STABLE] Admission webhook latency histogram in seconds, identified by name \
                     and broken out for each operation and API resource and type (validate or \
                     admit).",
                ),
                &CALL_BUCKETS,
            ),
            requests: registry.counter_vec(Desc::counter(
                "apiserver_admission_webhook_request_total",
                &["code", "name", "operation", "rejected", "type"],
                "[ALPHA] Admission webhook request total, identified by name and broken out \
                 for each admission type (validating or admit) and operation. Additional labels \
                 specify whether the request was rejected or not and an HTTP status code. Codes \
                 greater than 600 are truncated to 600, to keep the metrics cardinality \
                 bounded.",
            )),
            rejections: registry.counter_vec(Desc::counter(
                "apiserver_admission_webhook_rejection_count",
                &["error_type", "name", "operation", "rejection_code", "type"],
                "[ALPHA] Admission webhook rejection count, identified by name and broken out \
                 for each admission type (validating or admit) and operation. Additional labels \
                 specify an error type (calling_webhook_error or apiserver_internal_error if an \
                 error occurred; no_error otherwise) and optionally a non-zero rejection code \
                 if the webhook rejects the request with an HTTP status code (honored by the \
                 apiserver when the code is greater or equal to 400). Codes greater than 600 \
                 are truncated to 600, to keep the metrics cardinality bounded.",
            )),
            failed_open: registry.counter_vec(Desc::counter(
                "apiserver_admission_webhook_fail_open_count",
                &["name", "type"],
                "[ALPHA] Admission webhook fail open count, identified by name and broken out \
                 for each admission type (validating or admit).",
            )),
            exclusions: registry.counter_vec(Desc::counter(
                "apiserver_admission_match_condition_exclusions_total",
                &["kind", "name", "operation", "type"],
                "[ALPHA] Admission match condition evaluation exclusions count, identified by \
                 name of resource containing the match condition and broken out for each kind \
                 containing matchConditions (webhook or policy), operation and admission type \
                 (validate or admit).",
            )),
            condition_errors: registry.counter_vec(Desc::counter(
                "apiserver_admission_match_condition_evaluation_errors_total",
                &["kind", "name", "operation", "type"],
                "[ALPHA] Admission match condition evaluation errors count, identified by name \
                 of resource containing the match condition and broken out for each kind \
                 containing matchConditions (webhook or policy), operation and admission type \
                 (validate or admit).",
            )),
            condition_durations: registry.histogram_vec(
                Desc::histogram(
                    "apiserver_admission_match_condition_evaluation_seconds",
                    &["kind", "name", "operation", "type"],
                    "[ALPHA] Admission match condition evaluation time in seconds, identified by \
                     name and broken out for each kind containing matchConditions (webhook or \
                     policy), operation and type (validate or admit).",
                ),
                &CONDITION_BUCKETS,
            ),
            policies: PolicyMetrics::new(registry),
        }
    }

    /// Counts a call that took this long and returned this code.
    pub(crate) fn observe_call(
        &self,
        call: HookLabels<'_>,
        rejected: Option<ErrorType>,
        code: u16,
        elapsed: Duration,
    ) {
        let HookLabels { name, step, operation } = call;
        let code = code.min(MAX_CODE).to_string();
        let (was_rejected, labels) = (
            rejected.is_some().to_string(),
            [("name", name.to_owned()), ("type", step.to_owned()), ("operation", operation.to_owned())],
        );
        let [of_name, of_type, of_operation] = labels;
        let duration =
            [of_name.clone(), of_type.clone(), of_operation.clone(), ("rejected", was_rejected.clone())];
        self.durations.get_or_create(&duration).observe(elapsed.as_secs_f64());
        let request = [
            of_name.clone(),
            of_type.clone(),
            of_operation.clone(),
            ("code", code.clone()),
            ("rejected", was_rejected),
        ];
        self.requests.get_or_create(&request).inc();
        if let Some(error) = rejected {
            let error = ("error_type", error.label().to_owned());
            let rejection = [of_name, of_type, of_operation, error, ("rejection_code", code)];
            self.rejections.get_or_create(&rejection).inc();
        }
    }

    /// Counts a call that took this long and admitted the request. This is the most frequent case, so its labels
    /// are resolved once.
    pub(crate) fn observe_admitted_call(
        &self,
        cache: &AdmittedCallMetrics,
        operation: Operation,
        call: HookLabels<'_>,
        elapsed: Duration,
    ) {
        let Some(index) = OPERATIONS.iter().position(|candidate| *candidate == operation) else { return };
        let (durations, requests) = cache.0[index].get_or_init(|| {
            let HookLabels { name, step, operation } = call;
            let labels = [("name", name), ("type", step), ("operation", operation)];
            let [name, kind, operation] = labels.map(|(label, value)| (label, value.to_owned()));
            let rejected = ("rejected", false.to_string());
            let duration = [name.clone(), kind.clone(), operation.clone(), rejected.clone()];
            let request = [name, kind, operation, ("code", "200".to_owned()), rejected];
            (self.durations.get_or_create(&duration).clone(), self.requests.get_or_create(&request).clone())
        });
        durations.observe(elapsed.as_secs_f64());
        requests.inc();
    }

    /// Counts a webhook that could not be called and is ignored.
    pub(crate) fn count_fail_open(&self, call: HookLabels<'_>) {
        let labels = [("name", call.name.to_owned()), ("type", call.step.to_owned())];
        self.failed_open.get_or_create(&labels).inc();
    }

    /// Counts an evaluation of match conditions that took this long, with any result.
    pub(crate) fn observe_conditions(&self, hook: HookLabels<'_>, kind: &'static str, duration: Duration) {
        self.condition_durations.get_or_create(&condition(hook, kind)).observe(duration.as_secs_f64());
    }

    /// Counts match conditions that excluded a request.
    pub(crate) fn count_exclusion(&self, hook: HookLabels<'_>, kind: &'static str) {
        self.exclusions.get_or_create(&condition(hook, kind)).inc();
    }

    /// Counts match conditions that failed.
    pub(crate) fn count_condition_error(&self, hook: HookLabels<'_>, kind: &'static str) {
        self.condition_errors.get_or_create(&condition(hook, kind)).inc();
    }
}

impl ErrorType {
    fn label(self) -> &'static str {
        match self {
            Self::None => "no_error",
            Self::Calling => "calling_webhook_error",
            Self::Server => "apiserver_internal_error",
        }
    }
}

fn condition(hook: HookLabels<'_>, kind: &'static str) -> Labels<4> {
    [
        ("name", hook.name.to_owned()),
        ("kind", kind.to_owned()),
        ("type", hook.step.to_owned()),
        ("operation", hook.operation.to_owned()),
    ]
}
