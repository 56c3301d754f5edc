//! Upstream's metrics of admission policies and of their expressions.

use std::time::{Duration, Instant};

use portico_kit::metrics::{Desc, Histogram, HistogramVec, Registry};
use portico_policy::ExpressionError;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

type Labels<const N: usize> = [(&'static str, String); N];

/// Upper bounds of the histograms of checks, in seconds (upstream's).
const CHECK_BUCKETS: [f64; 5] = [0.000_000_5, 0.001, 0.01, 0.1, 1.0];
/// Upper bounds of the histograms of compilations and evaluations, in seconds (defaults of Prometheus, which upstream uses).
const EXPRESSION_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Metrics of admission policies.
pub(crate) struct PolicyMetrics {
    validations: Family<Labels<4>, Counter>,
    validation_durations: HistogramVec<Labels<4>>,
    mutations: Family<Labels<3>, Counter>,
    mutation_durations: HistogramVec<Labels<3>>,
    compilations: Histogram,
    evaluations: Histogram,
}

/// Labels for a policy and its binding.
#[derive(Clone, Copy)]
pub(crate) struct BindingLabels<'n> {
    pub(crate) policy: &'n str,
    pub(crate) binding: &'n str,
}

/// Reason why a check failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorType {
    /// The check did not fail.
    None,
    /// The expression does not compile.
    Compile,
    /// The expression exceeds its cost budget.
    OutOfBudget,
    /// Any other error, and, as upstream counts them, failed validations.
    Invalid,
}

impl ErrorType {
    /// Classifies an error by its message (upstream's `ErrorType`).
    pub(crate) fn from_message(message: &str) -> Self {
        if message.starts_with("compilation") {
            Self::Compile
        } else if message.starts_with("validation failed due to running out of cost budget") {
            Self::OutOfBudget
        } else {
            Self::Invalid
        }
    }

    /// Returns the error type of a mutation that compiled and could not be evaluated.
    pub(crate) fn from_problem(problem: &ExpressionError) -> Self {
        match problem {
            ExpressionError::OutOfBudget => Self::OutOfBudget,
            ExpressionError::Failed(_) => Self::Invalid,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::None => "no_error",
            Self::Compile => "compile_error",
            Self::OutOfBudget => "out_of_budget",
            Self::Invalid => "invalid_error",
        }
    }
}

impl PolicyMetrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        Self {
            validations: registry.counter_vec(Desc::counter(
                "apiserver_validating_admission_policy_check_total",
                &["enforcement_action", "error_type", "policy", "policy_binding"],
                "[BETA] Validation admission policy check total, labeled by policy and further \
                 identified by binding and enforcement action taken.",
            )),
            validation_durations: registry.histogram_vec(
                Desc::histogram(
                    "apiserver_validating_admission_policy_check_duration_seconds",
                    &["enforcement_action", "error_type", "policy", "policy_binding"],
                    "[BETA] Validation admission latency for individual validation expressions in \
                     seconds, labeled by policy and further including binding and enforcement \
                     action taken.",
                ),
                &CHECK_BUCKETS,
            ),
            mutations: registry.counter_vec(Desc::counter(
                "apiserver_mutating_admission_policy_check_total",
                &["error_type", "policy", "policy_binding"],
                "[ALPHA] Mutation admission policy check total, labeled by policy and further \
                 identified by binding.",
            )),
            mutation_durations: registry.histogram_vec(
                Desc::histogram(
                    "apiserver_mutating_admission_policy_check_duration_seconds",
                    &["error_type", "policy", "policy_binding"],
                    "[ALPHA] Mutation admission latency for individual mutation expressions in \
                     seconds, labeled by policy and binding.",
                ),
                &CHECK_BUCKETS,
            ),
            compilations: registry.histogram(
                Desc::histogram(
                    "apiserver_cel_compilation_duration_seconds",
                    &[],
                    "[BETA] CEL compilation time in seconds.",
                ),
                &EXPRESSION_BUCKETS,
            ),
            evaluations: registry.histogram(
                Desc::histogram(
                    "apiserver_cel_evaluation_duration_seconds",
                    &[],
                    "[BETA] CEL evaluation time in seconds.",
                ),
                &EXPRESSION_BUCKETS,
            ),
        }
    }

    /// Compiles a policy and measures the duration.
    pub(crate) fn time_compilation<T>(&self, compile: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let compiled = compile();
        self.compilations.observe(started.elapsed().as_secs_f64());
        compiled
    }

    /// Counts an evaluation of expressions.
    pub(crate) fn observe_evaluation(&self, duration: Duration) {
        self.evaluations.observe(duration.as_secs_f64());
    }

    /// Counts a failed validation and its consequence: `deny`, `warn`, `audit`, or `allow` if the failure is ignored.
    pub(crate) fn observe_validation(
        &self,
        checked: BindingLabels<'_>,
        error: ErrorType,
        action: &'static str,
        duration: Duration,
    ) {
        let [policy, binding, error] = labels(checked, error);
        let labels = [policy, binding, error, ("enforcement_action", action.to_owned())];
        self.validations.get_or_create(&labels).inc();
        self.validation_durations.get_or_create(&labels).observe(duration.as_secs_f64());
    }

    /// Counts a mutation that was applied or failed.
    pub(crate) fn observe_mutation(&self, checked: BindingLabels<'_>, error: ErrorType, duration: Duration) {
        let labels = labels(checked, error);
        self.mutations.get_or_create(&labels).inc();
        self.mutation_durations.get_or_create(&labels).observe(duration.as_secs_f64());
    }
}

fn labels(checked: BindingLabels<'_>, error: ErrorType) -> Labels<3> {
    [
        ("policy", checked.policy.to_owned()),
        ("policy_binding", checked.binding.to_owned()),
        ("error_type", error.label().to_owned()),
    ]
}
