//! Upstream's metrics of issuers: latency of token validation, and times of key fetches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use portico_kit::metrics::{Desc, FloatGauge, HistogramVec, Registry};
use portico_machinery::digest::sha256_label;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

type Labels<const N: usize> = [(&'static str, String); N];

/// Upper bounds of the histogram, in seconds.
const SECONDS: &[f64] = &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Metrics of all issuers.
#[derive(Clone)]
pub(super) struct IssuerMetrics {
    seconds: HistogramVec<Labels<2>>,
    last: Family<Labels<3>, FloatGauge>,
    info: Family<Labels<3>, Gauge>,
    /// Hash of the ID of this server.
    server: Arc<str>,
    /// Metrics of keys, by issuer.
    keys: Arc<Mutex<BTreeMap<String, Arc<KeyMetrics>>>>,
}

impl IssuerMetrics {
    /// Registers the metrics of the process.
    pub(super) fn new(registry: &Registry, server_id: &str) -> Self {
        Self {
            seconds: registry.histogram_vec(
                Desc::histogram(
                    "apiserver_authentication_jwt_authenticator_latency_seconds",
                    &["jwt_issuer_hash", "result"],
                    "[ALPHA] Latency of jwt authentication operations in seconds. This is the time \
                     spent authenticating a token for cache miss only (i.e. when the token is not \
                     found in the cache).",
                ),
                SECONDS,
            ),
            last: registry.float_gauge_vec(Desc::gauge(
                "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds",
                &["apiserver_id_hash", "jwt_issuer_hash", "result"],
                "[ALPHA] Timestamp of the last successful or failed JWKS fetch split by \
                 result, api server identity and jwt issuer for the JWT authenticator.",
            )),
            info: registry.gauge_vec(Desc::gauge(
                "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info",
                &["apiserver_id_hash", "hash", "jwt_issuer_hash"],
                "[ALPHA] Information about the last JWKS fetched by the JWT authenticator with \
                 hash as label, split by api server identity and jwt issuer.",
            )),
            server: sha256_label(server_id.as_bytes()).into(),
            keys: Arc::default(),
        }
    }

    /// Records the validation of a token.
    pub(super) fn authenticated(&self, issuer: &str, is_good: bool, took: Duration) {
        let result = if is_good { "success" } else { "failure" };
        let labels = [("result", result.to_owned()), ("jwt_issuer_hash", sha256_label(issuer.as_bytes()))];
        self.seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Returns the metrics of one issuer's keys.
    pub(super) fn of_keys(&self, issuer: &str) -> Arc<KeyMetrics> {
        let made = || {
            Arc::new(KeyMetrics {
                last: self.last.clone(),
                info: self.info.clone(),
                server: Arc::clone(&self.server),
                issuer: sha256_label(issuer.as_bytes()),
                in_force: Mutex::default(),
            })
        };
        Arc::clone(self.keys.lock().entry(issuer.to_owned()).or_insert_with(made))
    }

    /// Removes the metrics of all other issuers (`DeleteJWKSFetchMetrics`).
    pub(super) fn retain(&self, is_asked: impl Fn(&str) -> bool) {
        self.keys.lock().retain(|issuer, metrics| {
            let stays = is_asked(issuer);
            if !stays {
                metrics.forget();
            }
            stays
        });
    }
}

/// Metrics of one issuer's keys.
pub(super) struct KeyMetrics {
    last: Family<Labels<3>, FloatGauge>,
    info: Family<Labels<3>, Gauge>,
    server: Arc<str>,
    issuer: String,
    in_force: Mutex<Option<String>>,
}

impl KeyMetrics {
    /// Records a fetch of keys; `None` if it failed.
    pub(super) fn fetched(&self, document: Option<&[u8]>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let result = if document.is_some() { "success" } else { "failure" };
        self.last.get_or_create(&self.labels(("result", result.to_owned()))).set(now.as_secs_f64());
        let Some(document) = document else { return };
        let hash = sha256_label(document);
        let mut in_force = self.in_force.lock();
        if let Some(old) = in_force.replace(hash.clone()) {
            self.info.remove(&self.set(old));
        }
        self.info.get_or_create(&self.set(hash)).set(1);
    }

    fn labels(&self, first: (&'static str, String)) -> Labels<3> {
        let (issuer, server) = (self.issuer.clone(), self.server.to_string());
        [first, ("jwt_issuer_hash", issuer), ("apiserver_id_hash", server)]
    }

    fn set(&self, hash: String) -> Labels<3> {
        let (issuer, server) = (self.issuer.clone(), self.server.to_string());
        [("jwt_issuer_hash", issuer), ("apiserver_id_hash", server), ("hash", hash)]
    }

    fn forget(&self) {
        for result in ["success", "failure"] {
            self.last.remove(&self.labels(("result", result.to_owned())));
        }
        if let Some(old) = self.in_force.lock().take() {
            self.info.remove(&self.set(old));
        }
    }
}
