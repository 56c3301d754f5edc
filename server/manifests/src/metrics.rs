//! What the folder's metrics are called.

use std::time::{SystemTime, UNIX_EPOCH};

use portico_kit::metrics::{FloatGauge, Registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::pass::Done;

type Label = [(&'static str, &'static str); 1];

/// See the module.
pub(crate) struct Metrics {
    documents: Family<Label, Gauge>,
    left: Gauge,
    pruned: Counter,
    passes: Family<Label, Counter>,
    writes: Family<Label, Counter>,
    last: Family<Label, FloatGauge>,
}

impl Metrics {
    /// Those of the process.
    pub(crate) fn new(registry: &Registry) -> Self {
        Self {
            documents: registry.gauge_vec(
                "portico_manifests_documents",
                "Documents of the folder of manifests, by whether they are applied",
            ),
            left: registry.gauge(
                "portico_manifests_left_objects",
                "Objects that were made of the folder of manifests, are no longer in it and still there",
            ),
            pruned: registry.counter(
                "portico_manifests_pruned_objects",
                "Objects that were deleted because they left the folder of manifests",
            ),
            passes: registry.counter_vec(
                "portico_manifests_passes",
                "Passes over the folder of manifests, by outcome: applied, failed or unreadable",
            ),
            writes: registry.counter_vec(
                "portico_manifests_applied_documents",
                "Documents that were applied, by outcome: created, changed, unchanged or failed",
            ),
            last: registry.float_gauge_vec(
                "portico_manifests_last_pass_timestamp_seconds",
                "When the last pass over the folder of manifests ended, by outcome",
            ),
        }
    }

    /// A pass has ended.
    pub(crate) fn passed(&self, done: &Done) {
        let applied = done.created + done.changed + done.unchanged + done.skipped;
        let set = |state, count: usize| {
            self.documents.get_or_create(&[("state", state)]).set(i64::try_from(count).unwrap_or(i64::MAX));
        };
        set("applied", applied);
        set("failed", done.faults.len());
        let counted = [
            ("created", done.created),
            ("changed", done.changed),
            ("unchanged", done.unchanged),
            ("failed", done.faults.len()),
        ];
        for (outcome, count) in counted {
            self.writes.get_or_create(&[("outcome", outcome)]).inc_by(count as u64);
        }
        self.ended(if done.faults.is_empty() { "applied" } else { "failed" });
    }

    /// The folder could not be read.
    pub(crate) fn unreadable(&self) {
        self.ended("unreadable");
    }

    fn ended(&self, outcome: &'static str) {
        self.passes.get_or_create(&[("outcome", outcome)]).inc();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last.get_or_create(&[("outcome", outcome)]).set(now.as_secs_f64());
    }

    /// So many are left, and so many were deleted.
    pub(crate) fn pruned(&self, left: usize, deleted: usize) {
        self.left.set(i64::try_from(left).unwrap_or(i64::MAX));
        self.pruned.inc_by(deleted as u64);
    }
}
