//! Metrics of the manifests folder.

use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use portico_kit::metrics::{Desc, FloatGauge, Registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::aggregated_applier::GroupResult;
use crate::pass::PassResult;
use crate::state::AggregatedState;

type Label = [(&'static str, &'static str); 1];

/// Numbers of documents, and of objects without a manifest.
#[derive(Clone, Copy, Default)]
struct Counts {
    applied: usize,
    failed: usize,
    waiting: usize,
    remaining: usize,
}

/// Counts of this server and of other servers.
#[derive(Default)]
struct CountsByServer {
    own: Counts,
    aggregated: Counts,
}

pub(crate) struct Metrics {
    counts: Mutex<CountsByServer>,
    documents: Family<Label, Gauge>,
    remaining: Gauge,
    pruned: Counter,
    passes: Family<Label, Counter>,
    writes: Family<Label, Counter>,
    last_pass_time: Family<Label, FloatGauge>,
}

impl Metrics {
    /// Registers the metrics.
    pub(crate) fn new(registry: &Registry) -> Self {
        Self {
            counts: Mutex::default(),
            documents: registry.gauge_vec(Desc::gauge(
                "portico_manifests_documents",
                &["state"],
                "Documents in the manifests folder, by state: applied, failed or waiting for \
                 another API server",
            )),
            remaining: registry.gauge(Desc::gauge(
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
            last_pass_time: registry.float_gauge_vec(Desc::gauge(
                "portico_manifests_last_pass_timestamp_seconds",
                &["outcome"],
                "Unix time at which the last pass over the manifests folder ended, by outcome",
            )),
        }
    }

    /// Records the end of a pass.
    pub(crate) fn record_pass(&self, result: &PassResult) {
        let applied = result.created + result.changed + result.unchanged + result.skipped;
        self.set(|counts| (counts.own.applied, counts.own.failed) = (applied, result.faults.len()));
        self.count(result.created, result.changed, result.unchanged, result.faults.len());
        self.count_pass(if result.faults.is_empty() { "applied" } else { "failed" });
    }

    /// Records a pass on another server.
    pub(crate) fn record_group_pass(&self, result: &GroupResult) {
        self.count(result.created, result.changed, result.unchanged, result.refused.len());
        self.pruned.inc_by(result.deleted as u64);
    }

    /// Sets the counts of other servers.
    pub(crate) fn set_aggregated(&self, applied: usize, aggregated: &AggregatedState, remaining: usize) {
        let (failed, waiting) = (aggregated.refused.len(), aggregated.waiting.len());
        self.set(|counts| counts.aggregated = Counts { applied, failed, waiting, remaining });
    }

    fn count(&self, created: usize, changed: usize, unchanged: usize, failed: usize) {
        let counted =
            [("created", created), ("changed", changed), ("unchanged", unchanged), ("failed", failed)];
        for (outcome, count) in counted {
            self.writes.get_or_create(&[("outcome", outcome)]).inc_by(count as u64);
        }
    }

    fn set(&self, change: impl FnOnce(&mut CountsByServer)) {
        let mut counts = self.counts.lock();
        change(&mut counts);
        let CountsByServer { own, aggregated } = &*counts;
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        for (state, count) in [
            ("applied", own.applied + aggregated.applied),
            ("failed", own.failed + aggregated.failed),
            ("waiting", own.waiting + aggregated.waiting),
        ] {
            self.documents.get_or_create(&[("state", state)]).set(gauge(count));
        }
        self.remaining.set(gauge(own.remaining + aggregated.remaining));
    }

    /// Records that the folder could not be read.
    pub(crate) fn record_unreadable(&self) {
        self.count_pass("unreadable");
    }

    fn count_pass(&self, outcome: &'static str) {
        self.passes.get_or_create(&[("outcome", outcome)]).inc();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_pass_time.get_or_create(&[("outcome", outcome)]).set(now.as_secs_f64());
    }

    /// Records the numbers of remaining and of deleted objects without a manifest.
    pub(crate) fn record_pruning(&self, remaining: usize, deleted: usize) {
        self.set(|counts| counts.own.remaining = remaining);
        self.pruned.inc_by(deleted as u64);
    }
}
