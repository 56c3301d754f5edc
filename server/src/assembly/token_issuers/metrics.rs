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
    last_fetch: Family<Labels<3>, FloatGauge>,
    info: Family<Labels<3>, Gauge>,
    /// Hash of the ID of this server.
    server_hash: Arc<str>,
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
            last_fetch: registry.float_gauge_vec(Desc::gauge(
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
            server_hash: sha256_label(server_id.as_bytes()).into(),
            keys: Arc::default(),
        }
    }

    /// Records the validation of a token.
    pub(super) fn observe_token(&self, issuer: &str, is_valid: bool, duration: Duration) {
        let result = if is_valid { "success" } else { "failure" };
        let labels = [("result", result.to_owned()), ("jwt_issuer_hash", sha256_label(issuer.as_bytes()))];
        self.seconds.get_or_create(&labels).observe(duration.as_secs_f64());
    }

    /// Returns the metrics of one issuer's keys.
    pub(super) fn for_keys(&self, issuer: &str) -> Arc<KeyMetrics> {
        let new_metrics = || {
            Arc::new(KeyMetrics {
                last_fetch: self.last_fetch.clone(),
                info: self.info.clone(),
                server_hash: Arc::clone(&self.server_hash),
                issuer_hash: sha256_label(issuer.as_bytes()),
                current_hash: Mutex::default(),
            })
        };
        Arc::clone(self.keys.lock().entry(issuer.to_owned()).or_insert_with(new_metrics))
    }

    /// Removes the metrics of all other issuers (`DeleteJWKSFetchMetrics`).
    pub(super) fn retain(&self, is_configured: impl Fn(&str) -> bool) {
        self.keys.lock().retain(|issuer, metrics| {
            let remains = is_configured(issuer);
            if !remains {
                metrics.forget();
            }
            remains
        });
    }
}

/// Metrics of one issuer's keys.
pub(super) struct KeyMetrics {
    last_fetch: Family<Labels<3>, FloatGauge>,
    info: Family<Labels<3>, Gauge>,
    server_hash: Arc<str>,
    issuer_hash: String,
    current_hash: Mutex<Option<String>>,
}

impl KeyMetrics {
    /// Records a fetch of keys; `None` if it failed.
    pub(super) fn record_fetch(&self, document: Option<&[u8]>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let result = if document.is_some() { "success" } else { "failure" };
        self.last_fetch.get_or_create(&self.labels(("result", result.to_owned()))).set(now.as_secs_f64());
        let Some(document) = document else { return };
        let hash = sha256_label(document);
        let mut current_hash = self.current_hash.lock();
        if let Some(old) = current_hash.replace(hash.clone()) {
            self.info.remove(&self.set(old));
        }
        self.info.get_or_create(&self.set(hash)).set(1);
    }

    fn labels(&self, first: (&'static str, String)) -> Labels<3> {
        let (issuer, server) = (self.issuer_hash.clone(), self.server_hash.to_string());
        [first, ("jwt_issuer_hash", issuer), ("apiserver_id_hash", server)]
    }

    fn set(&self, hash: String) -> Labels<3> {
        let (issuer, server) = (self.issuer_hash.clone(), self.server_hash.to_string());
        [("jwt_issuer_hash", issuer), ("apiserver_id_hash", server), ("hash", hash)]
    }

    fn forget(&self) {
        for result in ["success", "failure"] {
            self.last_fetch.remove(&self.labels(("result", result.to_owned())));
        }
        if let Some(old) = self.current_hash.lock().take() {
            self.info.remove(&self.set(old));
        }
    }
}
