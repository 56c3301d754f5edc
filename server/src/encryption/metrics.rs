//! What is counted of reading the file again, under upstream's names (without the label of the API server).

use std::time::{SystemTime, UNIX_EPOCH};

use portico_kit::metrics::Registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

type Status = [(&'static str, &'static str); 1];

/// See the module.
#[derive(Clone)]
pub(super) struct ReloadMetrics {
    total: Family<Status, Counter>,
    last: Family<Status, Gauge>,
}

impl ReloadMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            total: registry.counter_vec(
                "apiserver_encryption_config_controller_automatic_reloads_total",
                "How often a changed encryption configuration was taken up, or could not be",
            ),
            last: registry.gauge_vec(
                "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds",
                "When that was last, in seconds of Unix time",
            ),
        }
    }

    pub(super) fn reloaded(&self, well: bool) {
        let labels = [("status", if well { "success" } else { "failure" })];
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        self.total.get_or_create(&labels).inc();
        self.last.get_or_create(&labels).set(i64::try_from(now).unwrap_or(i64::MAX));
    }
}
