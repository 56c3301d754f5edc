//! Upstream's metrics of the two phases of admission and of the plugins (`WithStepMetrics`, `WithControllerMetrics`).
//!
//! Every write is counted, so no exclusive lock is taken and nothing is allocated once a plugin has been counted.

use std::time::Duration;

use portico_kit::metrics::{Desc, Histogram, HistogramVec, Registry, SummaryVec};
use portico_registry::Operation;

/// Upper bounds of the histograms, in seconds.
const BOUNDS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];

/// Age limit of summaries (upstream's `latencySummaryMaxAge`).
const SUMMARY_MAX_AGE: Duration = Duration::from_secs(5 * 60 * 60);

/// Phase of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Mutating admission.
    Admit,
    /// Validating admission.
    Validate,
}

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Metrics of phases and plugins.
pub(crate) struct StepMetrics {
    steps: Vec<Histogram>,
    summaries: SummaryVec<Labels<3>>,
    plugins: HistogramVec<Labels<4>>,
}

/// Operations in the order of their metrics.
pub(crate) const OPERATIONS: [Operation; 4] =
    [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];

impl Step {
    fn label(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Validate => "validate",
        }
    }
}

impl StepMetrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        let steps: HistogramVec<Labels<3>> = registry.histogram_vec(
            Desc::histogram(
                "apiserver_admission_step_admission_duration_seconds",
                &["operation", "rejected", "type"],
                "[STABLE] Admission sub-step latency histogram in seconds, broken out for each \
                 operation and API resource and step type (validate or admit).",
            ),
            &BOUNDS,
        );
        let mut histograms = Vec::new();
        for step in [Step::Admit, Step::Validate] {
            for operation in OPERATIONS {
                for rejected in [false, true] {
                    let labels = [
                        ("type", step.label()),
                        ("operation", operation.name()),
                        ("rejected", text(rejected)),
                    ];
                    histograms.push(steps.get_or_create(&labels).clone());
                }
            }
        }
        let plugins = registry.histogram_vec(
            Desc::histogram(
                "apiserver_admission_controller_admission_duration_seconds",
                &["name", "operation", "rejected", "type"],
                "[STABLE] Admission controller latency histogram in seconds, identified by \
                 name and broken out for each operation and API resource and type (validate or \
                 admit).",
            ),
            &BOUNDS,
        );
        let summaries = registry.summary_vec(
            Desc::summary(
                "apiserver_admission_step_admission_duration_seconds_summary",
                &["operation", "rejected", "type"],
                "[ALPHA] Admission sub-step latency summary in seconds, broken out for each \
                 operation and API resource and step type (validate or admit).",
            ),
            SUMMARY_MAX_AGE,
        );
        Self { steps: histograms, summaries, plugins }
    }

    /// Counts a phase that took this long.
    pub(crate) fn observe_step(&self, step: Step, operation: Operation, rejected: bool, duration: Duration) {
        let labels = [("type", step.label()), ("operation", operation.name()), ("rejected", text(rejected))];
        self.summaries.get_or_create(&labels).observe(duration.as_secs_f64());
        let operation = OPERATIONS.iter().position(|candidate| *candidate == operation).unwrap_or_default();
        let at = (usize::from(step == Step::Validate) * OPERATIONS.len() + operation) * 2;
        if let Some(histogram) = self.steps.get(at + usize::from(rejected)) {
            histogram.observe(duration.as_secs_f64());
        }
    }

    /// Counts a run of a plugin.
    pub(crate) fn observe_plugin(
        &self,
        name: &'static str,
        (step, operation): (Step, Operation),
        rejected: bool,
        duration: Duration,
    ) {
        let labels = [
            ("name", name),
            ("type", step.label()),
            ("operation", operation.name()),
            ("rejected", text(rejected)),
        ];
        self.plugins.get_or_create(&labels).observe(duration.as_secs_f64());
    }
}

fn text(rejected: bool) -> &'static str {
    if rejected { "true" } else { "false" }
}

#[cfg(test)]
mod tests {
    use portico_kit::metrics::Format;

    use super::*;

    #[test]
    fn each_step_is_counted_under_its_own_labels() {
        let registry = Registry::new();
        let steps = StepMetrics::new(&registry);
        steps.observe_step(Step::Admit, Operation::Create, false, Duration::ZERO);
        steps.observe_step(Step::Validate, Operation::Connect, true, Duration::from_secs(1));
        steps.observe_plugin("PodSecurity", (Step::Validate, Operation::Update), true, Duration::ZERO);
        let text = registry.encode(Format::Text);
        let step = "apiserver_admission_step_admission_duration_seconds_count";
        let summary = "apiserver_admission_step_admission_duration_seconds_summary";
        assert_eq!(text.matches(&format!("{summary}_count{{")).count(), 2, "{text}");
        for line in [
            format!(r#"{summary}_sum{{type="validate",operation="CONNECT",rejected="true"}} 1.0"#),
            format!(r#"{summary}{{type="validate",operation="CONNECT",rejected="true",quantile="0.99"}} 1.0"#),
            format!(r#"{step}{{type="admit",operation="CREATE",rejected="false"}} 1"#),
            format!(r#"{step}{{type="validate",operation="CONNECT",rejected="true"}} 1"#),
            format!(r#"{step}{{type="validate",operation="CREATE",rejected="false"}} 0"#),
            r#"apiserver_admission_controller_admission_duration_seconds_count{name="PodSecurity",type="validate",operation="UPDATE",rejected="true"} 1"#.to_owned(),
        ] {
            assert!(text.contains(&line), "{line}\n{text}");
        }
    }
}
