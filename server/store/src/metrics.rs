//! What the store counts. Names its metrics; must not know how they are exposed.

use portico_kit::metrics::{Desc, Histogram, Registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::key::Resource;

const SECONDS: &[f64] =
    &[0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
const GROUP: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

/// The store's metrics, registered once in the process's registry.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// `portico_store_commit_duration_seconds`: one group, from its first statement to its durable end.
    pub(crate) commit_seconds: Histogram,
    /// `portico_store_group_operations`: operations in one group.
    pub(crate) group_operations: Histogram,
    /// `portico_store_transactions_refused_total`: those whose expectation did not hold.
    pub(crate) refused: Counter,
    /// `portico_store_commit_failures_total`: groups that the database refused.
    pub(crate) failures: Counter,
    /// `portico_store_queue_depth`: requests that wait for the writer.
    pub(crate) queue_depth: Gauge,
    /// `portico_store_revision`: the current revision.
    pub(crate) revision: Gauge,
    /// `portico_store_compacted_revision`: the oldest that is kept.
    pub(crate) compacted: Gauge,
    /// `portico_store_cache_bytes`: estimate of what the current state takes in memory.
    pub(crate) cache_bytes: Gauge,
    /// `portico_store_cache_max_bytes`: what it may take; 0 where that has no end.
    pub(crate) cache_max_bytes: Gauge,
    /// `portico_store_cache_evictions_total`: resources that left memory to make room.
    pub(crate) cache_evictions: Counter,
    /// `portico_store_reads_past_cache_total`: reads of the current state that memory did not answer.
    pub(crate) reads_past_cache: Counter,
    /// `portico_store_history_bytes`: superseded values in the database.
    pub(crate) history_bytes: Gauge,
    /// `portico_store_archive_bytes`: past values that are kept longer than watches need them.
    pub(crate) archive_bytes: Gauge,
    /// `portico_store_subscriptions`: running watches.
    pub(crate) subscriptions: Gauge,
    /// `portico_store_unreadable_objects`: objects whose stored bytes cannot be read, by resource.
    pub(crate) unreadable: Family<[(&'static str, String); 2], Gauge>,
    /// `apiserver_storage_size_bytes`: upstream's name for the size of the database file.
    pub(crate) file_bytes: Gauge,
}

impl Metrics {
    /// Registers the store's metrics.
    pub fn new(registry: &Registry) -> Self {
        let gauge = |desc| registry.gauge(desc);
        let file_bytes = gauge(Desc::gauge(
            "apiserver_storage_size_bytes",
            &[],
            "[STABLE] Size of the storage database file physically allocated in bytes.",
        ));
        registry.hidden(
            Desc::gauge(
                "apiserver_storage_db_total_size_in_bytes",
                &[],
                "[ALPHA] Total size of the storage database file physically allocated in bytes.",
            ),
            "1.28.0",
            file_bytes.clone(),
        );
        Self {
            commit_seconds: registry.histogram(
                Desc::histogram(
                    "portico_store_commit_duration_seconds",
                    &[],
                    "Time in seconds to commit a group of transactions durably",
                ),
                SECONDS,
            ),
            group_operations: registry.histogram(
                Desc::histogram(
                    "portico_store_group_operations",
                    &[],
                    "Number of operations in a group of transactions",
                ),
                GROUP,
            ),
            refused: registry.counter(Desc::counter(
                "portico_store_transactions_refused_total",
                &[],
                "Transactions rejected because a precondition did not hold",
            )),
            failures: registry.counter(Desc::counter(
                "portico_store_commit_failures_total",
                &[],
                "Groups of transactions that the database failed to commit",
            )),
            queue_depth: gauge(Desc::gauge(
                "portico_store_queue_depth",
                &[],
                "Requests that wait for the writer of the store",
            )),
            revision: gauge(Desc::gauge("portico_store_revision", &[], "Current revision")),
            compacted: gauge(Desc::gauge(
                "portico_store_compacted_revision",
                &[],
                "Oldest revision that is retained",
            )),
            cache_bytes: gauge(Desc::gauge(
                "portico_store_cache_bytes",
                &[],
                "Estimated memory used by the cache of the current state in bytes",
            )),
            cache_max_bytes: gauge(Desc::gauge(
                "portico_store_cache_max_bytes",
                &[],
                "Maximum size of the cache of the current state in bytes; 0 if unlimited",
            )),
            cache_evictions: registry.counter(Desc::counter(
                "portico_store_cache_evictions_total",
                &[],
                "Resources evicted from the cache",
            )),
            reads_past_cache: registry.counter(Desc::counter(
                "portico_store_reads_past_cache_total",
                &[],
                "Reads of the current state that the cache could not serve; pages of lists are \
                 not counted",
            )),
            history_bytes: gauge(Desc::gauge(
                "portico_store_history_bytes",
                &[],
                "Bytes of superseded values in the database",
            )),
            archive_bytes: gauge(Desc::gauge(
                "portico_store_archive_bytes",
                &[],
                "Bytes of past values that are retained longer than watches need them",
            )),
            subscriptions: gauge(Desc::gauge(
                "portico_store_subscriptions",
                &[],
                "Active watches of the store",
            )),
            unreadable: registry.gauge_vec(Desc::gauge(
                "portico_store_unreadable_objects",
                &["group", "resource"],
                "Objects that cannot be decoded, among the resources that have been loaded",
            )),
            file_bytes,
        }
    }

    /// Reports how many objects of a resource cannot be read.
    pub(crate) fn unreadable(&self, resource: &Resource, count: usize) {
        self.unreadable.get_or_create(&labels(resource)).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

fn labels(resource: &Resource) -> [(&'static str, String); 2] {
    [("group", resource.group.clone()), ("resource", resource.resource.clone())]
}
