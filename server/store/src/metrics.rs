//! Metrics of the store. Independent of how metrics are exposed.

use portico_kit::metrics::{Desc, Histogram, Registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::key::Resource;

const SECONDS_BUCKETS: &[f64] =
    &[0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
const GROUP_BUCKETS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

/// Metrics of the store, registered once in the registry of the process.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// `portico_store_commit_duration_seconds`: duration of one group, from the first statement until it is durable.
    pub(crate) commit_seconds: Histogram,
    /// `portico_store_group_operations`: number of operations in one group.
    pub(crate) group_operations: Histogram,
    /// `portico_store_transactions_refused_total`: number of transactions whose precondition failed.
    pub(crate) refused: Counter,
    /// `portico_store_commit_failures_total`: number of groups that the database rejected.
    pub(crate) failures: Counter,
    /// `portico_store_queue_depth`: number of requests that wait for the writer.
    pub(crate) queue_depth: Gauge,
    /// `portico_store_revision`: current revision.
    pub(crate) revision: Gauge,
    /// `portico_store_compacted_revision`: oldest revision in the history.
    pub(crate) compacted: Gauge,
    /// `portico_store_cache_bytes`: estimated memory of the cached state.
    pub(crate) cache_bytes: Gauge,
    /// `portico_store_cache_max_bytes`: limit of the cache; 0 if unlimited.
    pub(crate) cache_max_bytes: Gauge,
    /// `portico_store_cache_evictions_total`: number of resources evicted from the cache.
    pub(crate) cache_evictions: Counter,
    /// `portico_store_reads_past_cache_total`: number of reads of the current state that bypassed the cache.
    pub(crate) reads_past_cache: Counter,
    /// `portico_store_history_bytes`: size of superseded values in the database.
    pub(crate) history_bytes: Gauge,
    /// `portico_store_archive_bytes`: size of archived values.
    pub(crate) archive_bytes: Gauge,
    /// `portico_store_subscriptions`: number of running watches.
    pub(crate) subscriptions: Gauge,
    /// `portico_store_unreadable_objects`: number of objects whose stored bytes cannot be read, by resource.
    pub(crate) unreadable: Family<[(&'static str, String); 2], Gauge>,
    /// `apiserver_storage_size_bytes`: size of the database file, under upstream's name.
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
        registry.register_hidden(
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
                SECONDS_BUCKETS,
            ),
            group_operations: registry.histogram(
                Desc::histogram(
                    "portico_store_group_operations",
                    &[],
                    "Number of operations in a group of transactions",
                ),
                GROUP_BUCKETS,
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

    /// Reports the number of unreadable objects of a resource.
    pub(crate) fn unreadable(&self, resource: &Resource, count: usize) {
        self.unreadable.get_or_create(&labels(resource)).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

fn labels(resource: &Resource) -> [(&'static str, String); 2] {
    [("group", resource.group.clone()), ("resource", resource.resource.clone())]
}
