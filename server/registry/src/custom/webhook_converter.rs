//! Client and metrics of conversion webhooks (metric names as upstream).

use std::time::Duration;

use portico_kit::metrics::{self, Desc, HistogramVec};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::review::Fault;
use crate::webhooks::Webhooks;

type ByVersions = [(&'static str, String); 4];
type ByResult = [(&'static str, String); 2];

/// Upper bounds of latency buckets in seconds, doubling from a millisecond.
const LATENCIES: [f64; 15] = [
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
];
/// Upper bounds of latency buckets in seconds, for single reviews.
const REVIEWS: [f64; 15] =
    [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];

/// Client for conversion webhooks with metrics.
pub(crate) struct WebhookConverter {
    pub(crate) webhooks: Webhooks,
    latencies: HistogramVec<ByVersions>,
    reviews: Family<ByResult, Counter>,
    durations: HistogramVec<ByResult>,
}

impl WebhookConverter {
    /// Registers `apiserver_crd_conversion_webhook_duration_seconds` and
    /// `apiserver_conversion_webhook_{request_total,duration_seconds}`.
    pub(crate) fn new(webhooks: Webhooks, registry: &metrics::Registry) -> Self {
        Self {
            webhooks,
            latencies: registry.histogram_vec(
                Desc::histogram(
                    "apiserver_crd_conversion_webhook_duration_seconds",
                    &["crd_name", "from_version", "succeeded", "to_version"],
                    "[ALPHA] CRD webhook conversion duration in seconds",
                ),
                &LATENCIES,
            ),
            reviews: registry.counter_vec(Desc::counter(
                "apiserver_conversion_webhook_request_total",
                &["failure_type", "result"],
                "[ALPHA] Counter for conversion webhook requests with success/failure and \
                 failure error type",
            )),
            durations: registry.histogram_vec(
                Desc::histogram(
                    "apiserver_conversion_webhook_duration_seconds",
                    &["failure_type", "result"],
                    "[ALPHA] Conversion webhook request latency",
                ),
                &REVIEWS,
            ),
        }
    }

    /// Records a conversion of a definition's objects between two versions.
    pub(super) fn observe_conversion(
        &self,
        definition: &str,
        [from, to]: [&str; 2],
        succeeded: bool,
        duration: Duration,
    ) {
        let labels = [
            ("crd_name", definition.to_owned()),
            ("from_version", from.to_owned()),
            ("to_version", to.to_owned()),
            ("succeeded", succeeded.to_string()),
        ];
        self.latencies.get_or_create(&labels).observe(duration.as_secs_f64());
    }

    /// Records a review and the fault of its response, if any.
    pub(super) fn observe_review(&self, fault: Option<Fault>, duration: Duration) {
        let result = if fault.is_none() { "success" } else { "failure" };
        let failure = fault.map(Fault::label).unwrap_or_default();
        let labels = [("result", result.to_owned()), ("failure_type", failure.to_owned())];
        self.reviews.get_or_create(&labels).inc();
        self.durations.get_or_create(&labels).observe(duration.as_secs_f64());
    }
}
