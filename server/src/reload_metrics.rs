//! Metrics of kube-apiserver about configuration files that are reloaded.

use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use portico_kit::metrics::{Desc, FloatGauge, Registry};
use portico_machinery::digest::sha256_label;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

type Labels<const N: usize> = [(&'static str, String); N];

/// Metric families of one kind of configuration.
pub(crate) struct ReloadDescs {
    reloads: Desc,
    last: Desc,
    info: Desc,
}

/// Families for `--authorization-config`.
pub(crate) const AUTHORIZATION: ReloadDescs = ReloadDescs {
    reloads: Desc::counter(
        "apiserver_authorization_config_controller_automatic_reloads_total",
        &["apiserver_id_hash", "status"],
        "[BETA] Total number of automatic reloads of authorization configuration split \
         by status and apiserver identity.",
    ),
    last: Desc::gauge(
        "apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds",
        &["apiserver_id_hash", "status"],
        "[BETA] Timestamp of the last automatic reload of authorization configuration \
         split by status and apiserver identity.",
    ),
    info: Desc::gauge(
        "apiserver_authorization_config_controller_last_config_info",
        &["apiserver_id_hash", "hash"],
        "[ALPHA] Information about the last applied authorization configuration with \
         hash as label, split by apiserver identity.",
    ),
};

/// Families for `--authentication-config`.
pub(crate) const AUTHENTICATION: ReloadDescs = ReloadDescs {
    reloads: Desc::counter(
        "apiserver_authentication_config_controller_automatic_reloads_total",
        &["apiserver_id_hash", "status"],
        "[BETA] Total number of automatic reloads of authentication configuration \
         split by status and apiserver identity.",
    ),
    last: Desc::gauge(
        "apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds",
        &["apiserver_id_hash", "status"],
        "[BETA] Timestamp of the last automatic reload of authentication configuration \
         split by status and apiserver identity.",
    ),
    info: Desc::gauge(
        "apiserver_authentication_config_controller_last_config_info",
        &["apiserver_id_hash", "hash"],
        "[ALPHA] Information about the last applied authentication configuration with \
         hash as label, split by apiserver identity.",
    ),
};

/// Families for `--encryption-provider-config`.
pub(crate) const ENCRYPTION: ReloadDescs = ReloadDescs {
    reloads: Desc::counter(
        "apiserver_encryption_config_controller_automatic_reloads_total",
        &["apiserver_id_hash", "status"],
        "[ALPHA] Total number of reload successes and failures of encryption \
         configuration split by apiserver identity.",
    ),
    last: Desc::gauge(
        "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds",
        &["apiserver_id_hash", "status"],
        "[ALPHA] Timestamp of the last successful or failed automatic reload of \
         encryption configuration split by apiserver identity.",
    ),
    info: Desc::gauge(
        "apiserver_encryption_config_controller_last_config_info",
        &["apiserver_id_hash", "hash"],
        "[ALPHA] Information about the last applied encryption configuration with hash \
         as label, split by apiserver identity.",
    ),
};

/// Metrics of one configuration file that is reloaded.
pub(crate) struct ReloadMetrics {
    reloads: Family<Labels<2>, Counter>,
    last: Family<Labels<2>, FloatGauge>,
    info: Family<Labels<2>, Gauge>,
    /// Hash of the ID of this server.
    server_hash: String,
    current_hash: Mutex<Option<String>>,
}

impl ReloadMetrics {
    /// Registers the families that `descs` describes.
    pub(crate) fn new(registry: &Registry, descs: &ReloadDescs, server_id: &str) -> Self {
        Self {
            reloads: registry.counter_vec(descs.reloads),
            last: registry.float_gauge_vec(descs.last),
            info: registry.gauge_vec(descs.info),
            server_hash: sha256_label(server_id.as_bytes()),
            current_hash: Mutex::default(),
        }
    }

    /// Records the initial configuration by the hash of its bytes.
    pub(crate) fn record_initial(&self, hash: String) {
        self.set_current(hash);
    }

    /// Records a changed configuration that is in use.
    pub(crate) fn record_success(&self, hash: String) {
        self.count_reload("success");
        self.set_current(hash);
    }

    fn set_current(&self, hash: String) {
        if let Some(old) = self.current_hash.lock().replace(hash.clone()) {
            self.info.remove(&self.config(old));
        }
        self.info.get_or_create(&self.config(hash)).set(1);
    }

    /// Records a changed configuration that cannot be used.
    pub(crate) fn record_failure(&self) {
        self.count_reload("failure");
    }

    fn count_reload(&self, status: &str) {
        let labels = [("status", status.to_owned()), ("apiserver_id_hash", self.server_hash.clone())];
        self.reloads.get_or_create(&labels).inc();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last.get_or_create(&labels).set(now.as_secs_f64());
    }

    fn config(&self, hash: String) -> Labels<2> {
        [("apiserver_id_hash", self.server_hash.clone()), ("hash", hash)]
    }
}
