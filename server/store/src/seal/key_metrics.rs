//! Metrics of the keys of key services, under upstream's names (`RecordKeyID` and related functions).
//!
//! Key IDs are exposed as digests. A service may change its key any number of times, so only the series of recently used IDs are
//! exposed, like upstream.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use portico_kit::metrics::{Desc, FloatGauge, Registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::object::key_id_digest;

/// Key ids for which metrics are kept.
///
/// Limit (Storage and watches): the series of the least recently used key is removed.
const MAX_SERIES: usize = 100;

type Labels<const N: usize> = [(&'static str, String); N];

/// Metrics of the keys of key services.
#[derive(Clone, Debug)]
pub(super) struct KeyMetrics {
    operations: Family<Labels<4>, Counter>,
    last_used: Family<Labels<4>, FloatGauge>,
    last_status: Family<Labels<3>, FloatGauge>,
    invalid: Family<Labels<2>, Counter>,
    cached: Family<Labels<1>, Gauge>,
    /// Digest of the ID of this server.
    server: String,
    /// Locked while a series is written, so that a removed series is not recreated.
    recently_used: Arc<Mutex<RecentLabels<Labels<4>>>>,
    recent_status_keys: Arc<Mutex<RecentLabels<Labels<3>>>>,
}

impl KeyMetrics {
    pub(super) fn new(registry: &Registry, server_id: &str) -> Self {
        Self {
            operations: registry.counter_vec(Desc::counter(
                "apiserver_envelope_encryption_key_id_hash_total",
                &["apiserver_id_hash", "key_id_hash", "provider_name", "transformation_type"],
                "[ALPHA] Number of times a keyID is used split by transformation type, \
                 provider, and apiserver identity.",
            )),
            last_used: registry.float_gauge_vec(Desc::gauge(
                "apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds",
                &["apiserver_id_hash", "key_id_hash", "provider_name", "transformation_type"],
                "[ALPHA] The last time in seconds when a keyID was used.",
            )),
            last_status: registry.float_gauge_vec(Desc::gauge(
                "apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds",
                &["apiserver_id_hash", "key_id_hash", "provider_name"],
                "[ALPHA] The last time in seconds when a keyID was returned by the Status RPC \
                 call.",
            )),
            invalid: registry.counter_vec(Desc::counter(
                "apiserver_envelope_encryption_invalid_key_id_from_status_total",
                &["error", "provider_name"],
                "[ALPHA] Number of times an invalid keyID is returned by the Status RPC call \
                 split by error.",
            )),
            cached: registry.gauge_vec(Desc::gauge(
                "apiserver_envelope_encryption_dek_source_cache_size",
                &["provider_name"],
                "[ALPHA] Number of records in data encryption key (DEK) source cache. On a \
                 restart, this value is an approximation of the number of decrypt RPC calls the \
                 server will make to the KMS plugin.",
            )),
            server: key_id_digest(server_id),
            recently_used: Arc::default(),
            recent_status_keys: Arc::default(),
        }
    }

    /// Records that a value was sealed (`to_storage`) or is opened (`from_storage`).
    pub(super) fn record_use(&self, direction: &str, provider: &str, key_id: &str) {
        let labels = [
            ("transformation_type", direction.to_owned()),
            ("provider_name", provider.to_owned()),
            ("key_id_hash", key_id_digest(key_id)),
            ("apiserver_id_hash", self.server.clone()),
        ];
        let mut recent = self.recently_used.lock();
        self.operations.get_or_create(&labels).inc();
        self.last_used.get_or_create(&labels).set(now());
        if let Some(old) = recent.add(labels) {
            self.operations.remove(&old);
            self.last_used.remove(&old);
        }
    }

    /// Records that the service has reported its key.
    pub(super) fn record_status(&self, provider: &str, key_id: &str) {
        let labels = [
            ("provider_name", provider.to_owned()),
            ("key_id_hash", key_id_digest(key_id)),
            ("apiserver_id_hash", self.server.clone()),
        ];
        let mut recent = self.recent_status_keys.lock();
        self.last_status.get_or_create(&labels).set(now());
        if let Some(old) = recent.add(labels) {
            self.last_status.remove(&old);
        }
    }

    /// Records an invalid key ID from the service: empty or too long.
    pub(super) fn record_invalid(&self, provider: &str, key_id: &str) {
        let error = if key_id.is_empty() { "empty" } else { "too_long" };
        let labels = [("provider_name", provider.to_owned()), ("error", error.to_owned())];
        self.invalid.get_or_create(&labels).inc();
    }

    /// Records the number of cached unwrapped keys of a provider.
    pub(super) fn set_cached_keys(&self, provider: &str, keys: usize) {
        let labels = [("provider_name", provider.to_owned())];
        self.cached.get_or_create(&labels).set(i64::try_from(keys).unwrap_or(i64::MAX));
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Most recently written label sets, latest first.
#[derive(Debug)]
struct RecentLabels<L>(VecDeque<L>);

impl<L> Default for RecentLabels<L> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<L: PartialEq> RecentLabels<L> {
    /// Adds a label set. Returns the set that it replaces.
    fn add(&mut self, labels: L) -> Option<L> {
        if let Some(index) = self.0.iter().position(|existing| *existing == labels) {
            self.0.remove(index);
        }
        self.0.push_front(labels);
        if self.0.len() > MAX_SERIES { self.0.pop_back() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use portico_kit::metrics::Format;

    use super::*;

    #[test]
    fn only_series_of_recently_used_keys_are_exposed() {
        let registry = Registry::new();
        let metrics = KeyMetrics::new(&registry, "server");
        for n in 0..=MAX_SERIES {
            metrics.record_use("to_storage", "kms", &n.to_string());
            metrics.record_status("kms", &n.to_string());
            // The first key stays in use.
            metrics.record_use("to_storage", "kms", "0");
        }
        let text = registry.encode(Format::from_accept(None));
        for (name, exposed_keys) in [
            ("apiserver_envelope_encryption_key_id_hash_total{", ["0", "2"]),
            ("apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds{", ["0", "2"]),
            ("apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds{", ["1", "2"]),
        ] {
            let series: Vec<_> = text.lines().filter(|line| line.starts_with(name)).collect();
            assert_eq!(series.len(), MAX_SERIES, "{name}");
            let has = |id: &str| series.iter().any(|line| line.contains(&key_id_digest(id)));
            assert!(exposed_keys.iter().all(|id| has(id)), "{name}");
            assert!(!["0", "1"].iter().all(|id| has(id)), "{name}");
        }
    }
}
