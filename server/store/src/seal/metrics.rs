//! Metrics of values at rest, under upstream's names.

use std::time::Duration;

use portico_kit::metrics::{Desc, Histogram, Registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::error::SealError;
use super::key_metrics::KeyMetrics;
use crate::key::Resource;

/// Exponential buckets from 5 microseconds with factor 2: calls of a key service take hundreds of milliseconds.
const SECONDS_BUCKETS: &[f64] = &[
    5e-6, 1e-5, 2e-5, 4e-5, 8e-5, 1.6e-4, 3.2e-4, 6.4e-4, 1.28e-3, 2.56e-3, 5.12e-3, 1.024e-2, 2.048e-2,
    4.096e-2, 8.192e-2, 0.163_84, 0.327_68, 0.655_36, 1.310_72, 2.621_44, 5.242_88, 10.485_76, 20.971_52,
    41.943_04, 83.886_08,
];

type Labels<const N: usize> = [(&'static str, String); N];

/// Metrics of a [`super::Seal`].
#[derive(Clone, Debug)]
pub struct SealMetrics {
    operations: Family<Labels<4>, Counter>,
    seconds: portico_kit::metrics::HistogramVec<Labels<2>>,
    pub(super) cache_misses: Counter,
    pub(super) generations: Histogram,
    pub(super) generation_failures: Counter,
    /// Metrics of the keys of key services.
    pub(super) keys: KeyMetrics,
}

impl SealMetrics {
    /// Registers the metrics for the server with this ID.
    #[must_use]
    pub fn new(registry: &Registry, server_id: &str) -> Self {
        Self {
            operations: registry.counter_vec(Desc::counter(
                "apiserver_storage_transformation_operations_total",
                &["resource", "status", "transformation_type", "transformer_prefix"],
                "[ALPHA] Total number of transformations. Successful transformation will have \
                 a status 'OK' and a varied status string when the transformation fails. The \
                 status, resource, and transformation_type fields can be used for alerting \
                 purposes. For example, you can monitor for encryption/decryption failures \
                 using the transformation_type (e.g., from_storage for decryption and \
                 to_storage for encryption). Additionally, these fields can be used to ensure \
                 that the correct transformers are applied to each resource.",
            )),
            seconds: registry.histogram_vec(
                Desc::histogram(
                    "apiserver_storage_transformation_duration_seconds",
                    &["transformation_type", "transformer_prefix"],
                    "[ALPHA] Latencies in seconds of value transformation operations.",
                ),
                SECONDS_BUCKETS,
            ),
            cache_misses: registry.counter(Desc::counter(
                "apiserver_storage_envelope_transformation_cache_misses_total",
                &[],
                "[ALPHA] Total number of cache misses while accessing key decryption key(KEK).",
            )),
            generations: registry.histogram(
                Desc::histogram(
                    "apiserver_storage_data_key_generation_duration_seconds",
                    &[],
                    "[ALPHA] Latencies in seconds of data encryption key(DEK) generation \
                     operations.",
                ),
                &SECONDS_BUCKETS[..14],
            ),
            generation_failures: registry.counter(Desc::counter(
                "apiserver_storage_data_key_generation_failures_total",
                &[],
                "[ALPHA] Total number of failed data encryption key(DEK) generation operations.",
            )),
            keys: KeyMetrics::new(registry, server_id),
        }
    }

    pub(super) fn record_transformation(
        &self,
        resource: &Resource,
        direction: &str,
        prefix: &str,
        elapsed: Duration,
        error: Option<&SealError>,
    ) {
        let prefix = if prefix.is_empty() && direction == "from_storage" { "identity" } else { prefix };
        let (direction, prefix) = (direction.to_owned(), prefix.to_owned());
        let labels = [
            ("resource", resource.to_string()),
            ("transformation_type", direction.clone()),
            ("transformer_prefix", prefix.clone()),
            ("status", error.map_or("OK", SealError::code).to_owned()),
        ];
        self.operations.get_or_create(&labels).inc();
        if error.is_none() {
            let labels = [("transformation_type", direction), ("transformer_prefix", prefix)];
            self.seconds.get_or_create(&labels).observe(elapsed.as_secs_f64());
        }
    }
}
