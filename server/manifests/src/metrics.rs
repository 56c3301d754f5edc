//! Metrics of the manifests folder.

use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use portico_kit::metrics::{Desc, FloatGauge, Registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::aggregated::Visit;
use crate::pass::Done;
use crate::state::AggregatedState;

type Label = [(&'static str, &'static str); 1];

/// Numbers of documents, and of objects without a manifest.
#[derive(Clone, Copy, Default)]
struct Counts {
    applied: usize,
    failed: usize,
    waiting: usize,
    left: usize,
}

/// Counts of this server and of other servers.
#[derive(Default)]
struct Parts {
    own: Counts,
    aggregated: Counts,
}

pub(crate) struct Metrics {
    parts: Mutex<Parts>,
    documents: Family<Label, Gauge>,
    left: Gauge,
    pruned: Counter,
    passes: Family<Label, Counter>,
    writes: Family<Label, Counter>,
    last: Family<Label, FloatGauge>,
}

impl Metrics {
    /// Registers the metrics.
    pub(crate) fn new(registry: &Registry) -> Self {
        Self {
            parts: Mutex::default(),
            documents: registry.gauge_vec(Desc::gauge(
                "portico_manifests_documents",
                &["state"],
                "Documents in the manifests folder, by state: applied, failed or waiting for \
                 another API server",
            )),
            left: registry.gauge(Desc::gauge(
                "portico_manifests_left_objects",
                &[],
                "Objects created from the manifests folder that are no longer in it and still \
                 exist",
            )),
            pruned: registry.counter(Desc::counter(
                "portico_manifests_pruned_objects",
                &[],
                "Objects deleted because they were removed from the manifests folder",
            )),
            passes: registry.counter_vec(Desc::counter(
                "portico_manifests_passes",
                &["outcome"],
                "Passes over the manifests folder, by outcome: applied, failed or unreadable",
            )),
            writes: registry.counter_vec(Desc::counter(
                "portico_manifests_applied_documents",
                &["outcome"],
                "Documents applied from the manifests folder, by outcome: created, changed, \
                 unchanged or failed",
            )),
            last: registry.float_gauge_vec(Desc::gauge(
                "portico_manifests_last_pass_timestamp_seconds",
                &["outcome"],
                "Unix time at which the last pass over the manifests folder ended, by outcome",
            )),
        }
    }

    /// Records the end of a pass.
    pub(crate) fn passed(&self, done: &Done) {
        let applied = done.created + done.changed + done.unchanged + done.skipped;
        self.set(|parts| (parts.own.applied, parts.own.failed) = (applied, done.faults.len()));
        self.count(done.created, done.changed, done.unchanged, done.faults.len());
        self.ended(if done.faults.is_empty() { "applied" } else { "failed" });
    }

    /// Records a pass on another server.
    pub(crate) fn visited(&self, visit: &Visit) {
        self.count(visit.created, visit.changed, visit.unchanged, visit.refused.len());
        self.pruned.inc_by(visit.deleted as u64);
    }

    /// Sets the counts of other servers.
    pub(crate) fn aggregated(&self, applied: usize, aggregated: &AggregatedState, left: usize) {
        let (failed, waiting) = (aggregated.refused.len(), aggregated.waiting.len());
        self.set(|parts| parts.aggregated = Counts { applied, failed, waiting, left });
    }

    fn count(&self, created: usize, changed: usize, unchanged: usize, failed: usize) {
        let counted =
            [("created", created), ("changed", changed), ("unchanged", unchanged), ("failed", failed)];
        for (outcome, count) in counted {
            self.writes.get_or_create(&[("outcome", outcome)]).inc_by(count as u64);
        }
    }

    fn set(&self, change: impl FnOnce(&mut Parts)) {
        let mut parts = self.parts.lock();
        change(&mut parts);
        let Parts { own, aggregated } = &*parts;
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        for (state, count) in [
            ("applied", own.applied + aggregated.applied),
            ("failed", own.failed + aggregated.failed),
            ("waiting", own.waiting + aggregated.waiting),
        ] {
            self.documents.get_or_create(&[("state", state)]).set(gauge(count));
        }
        self.left.set(gauge(own.left + aggregated.left));
    }

    /// Records that the folder could not be read.
    pub(crate) fn unreadable(&self) {
        self.ended("unreadable");
    }

    fn ended(&self, outcome: &'static str) {
        self.passes.get_or_create(&[("outcome", outcome)]).inc();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last.get_or_create(&[("outcome", outcome)]).set(now.as_secs_f64());
    }

    /// Records the numbers of remaining and of deleted objects without a manifest.
    pub(crate) fn pruned(&self, left: usize, deleted: usize) {
        self.set(|parts| parts.own.left = left);
        self.pruned.inc_by(deleted as u64);
    }
}
