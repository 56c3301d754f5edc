//! Upstream's metrics of configurations that are read again.

use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use portico_kit::metrics::{FloatGauge, Registry};
use portico_machinery::digest::sha256_label;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

type Labels<const N: usize> = [(&'static str, String); N];

/// How one kind of configuration calls its metrics.
pub(crate) struct ReloadNames {
    reloads: &'static str,
    last: &'static str,
    info: &'static str,
    of: &'static str,
}

/// Of `--authorization-config`.
pub(crate) const AUTHORIZATION: ReloadNames = ReloadNames {
    reloads: "apiserver_authorization_config_controller_automatic_reloads_total",
    last: "apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds",
    info: "apiserver_authorization_config_controller_last_config_info",
    of: "authorization",
};

/// Of `--authentication-config`.
pub(crate) const AUTHENTICATION: ReloadNames = ReloadNames {
    reloads: "apiserver_authentication_config_controller_automatic_reloads_total",
    last: "apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds",
    info: "apiserver_authentication_config_controller_last_config_info",
    of: "authentication",
};

/// Of `--encryption-provider-config`.
pub(crate) const ENCRYPTION: ReloadNames = ReloadNames {
    reloads: "apiserver_encryption_config_controller_automatic_reloads_total",
    last: "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds",
    info: "apiserver_encryption_config_controller_last_config_info",
    of: "encryption",
};

/// Of a configuration that is read again.
pub(crate) struct ReloadMetrics {
    reloads: Family<Labels<2>, Counter>,
    last: Family<Labels<2>, FloatGauge>,
    info: Family<Labels<2>, Gauge>,
    /// Which server this is, hashed.
    server: String,
    in_force: Mutex<Option<String>>,
}

impl ReloadMetrics {
    /// Those of the process.
    pub(crate) fn new(registry: &Registry, names: &ReloadNames, server_id: &str) -> Self {
        let of = names.of;
        Self {
            reloads: registry.counter_vec(
                names.reloads,
                &format!("Total number of automatic reloads of {of} configuration split by status and apiserver identity."),
            ),
            last: registry.float_gauge_vec(
                names.last,
                &format!("Timestamp of the last automatic reload of {of} configuration split by status and apiserver identity."),
            ),
            info: registry.gauge_vec(
                names.info,
                &format!("Information about the last applied {of} configuration with hash as label, split by apiserver identity."),
            ),
            server: sha256_label(server_id.as_bytes()),
            in_force: Mutex::default(),
        }
    }

    /// The first configuration is in force, whose bytes have this hash.
    pub(crate) fn started(&self, hash: String) {
        self.put_in_force(hash);
    }

    /// A changed configuration is in force.
    pub(crate) fn succeeded(&self, hash: String) {
        self.ended("success");
        self.put_in_force(hash);
    }

    fn put_in_force(&self, hash: String) {
        if let Some(old) = self.in_force.lock().replace(hash.clone()) {
            self.info.remove(&self.config(old));
        }
        self.info.get_or_create(&self.config(hash)).set(1);
    }

    /// A changed configuration cannot be used.
    pub(crate) fn failed(&self) {
        self.ended("failure");
    }

    fn ended(&self, status: &str) {
        let labels = [("status", status.to_owned()), ("apiserver_id_hash", self.server.clone())];
        self.reloads.get_or_create(&labels).inc();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last.get_or_create(&labels).set(now.as_secs_f64());
    }

    fn config(&self, hash: String) -> Labels<2> {
        [("apiserver_id_hash", self.server.clone()), ("hash", hash)]
    }
}
