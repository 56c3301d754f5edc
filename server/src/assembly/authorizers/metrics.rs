//! Upstream's metrics of authorizers, and of configurations that are read again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use portico_kit::metrics::{FloatGauge, HistogramVec, Registry};
use portico_machinery::digest::sha256_hex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

type Labels<const N: usize> = [(&'static str, String); N];

/// Upper bounds in seconds of calls (Prometheus' `DefBuckets`).
const CALLS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Upper bounds in seconds of match conditions.
const CONDITIONS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Called {
    /// A review came back.
    Success,
    /// Nothing came in time.
    Timeout,
    /// What came is no review.
    Error,
}

impl Called {
    fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Timeout => "timeout",
            Self::Error => "error",
        }
    }
}

/// Of all authorizers.
#[derive(Clone)]
pub(super) struct AuthorizationMetrics {
    decisions: Family<Labels<3>, Counter>,
    calls: Family<Labels<2>, Counter>,
    durations: HistogramVec<Labels<2>>,
    failed_open: Family<Labels<2>, Counter>,
    condition_errors: Family<Labels<2>, Counter>,
    exclusions: Family<Labels<2>, Counter>,
    condition_durations: HistogramVec<Labels<2>>,
}

/// Of one webhook.
pub(super) struct WebhookMetrics {
    name: String,
    all: AuthorizationMetrics,
}

impl AuthorizationMetrics {
    /// Those of the process.
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            decisions: registry.counter_vec(
                "apiserver_authorization_decisions_total",
                "Total number of terminal decisions made by an authorizer split by authorizer type, name, and decision.",
            ),
            calls: registry.counter_vec(
                "apiserver_authorization_webhook_evaluations_total",
                "Round-trips to authorization webhooks.",
            ),
            durations: registry.histogram_vec(
                "apiserver_authorization_webhook_duration_seconds",
                "Request latency in seconds.",
                &CALLS,
            ),
            failed_open: registry.counter_vec(
                "apiserver_authorization_webhook_evaluations_fail_open_total",
                "NoOpinion results due to webhook timeout or error.",
            ),
            condition_errors: registry.counter_vec(
                "apiserver_authorization_match_condition_evaluation_errors_total",
                "Total number of errors when an authorization webhook encounters a match condition error split by authorizer type and name.",
            ),
            exclusions: registry.counter_vec(
                "apiserver_authorization_match_condition_exclusions_total",
                "Total number of exclusions when an authorization webhook is skipped because match conditions exclude it.",
            ),
            condition_durations: registry.histogram_vec(
                "apiserver_authorization_match_condition_evaluation_seconds",
                "Authorization match condition evaluation time in seconds, split by authorizer type and name.",
                &CONDITIONS,
            ),
        }
    }

    /// The counter of an authorizer's decisions of one kind.
    pub(super) fn decisions(&self, ty: &str, name: &str, decision: &str) -> Counter {
        let labels = [("type", ty.to_owned()), ("name", name.to_owned()), ("decision", decision.to_owned())];
        self.decisions.get_or_create(&labels).clone()
    }

    /// Those of the webhook of this name.
    pub(super) fn of_webhook(&self, name: &str) -> WebhookMetrics {
        WebhookMetrics { name: name.to_owned(), all: self.clone() }
    }
}

impl WebhookMetrics {
    /// A call has ended.
    pub(super) fn called(&self, how: Called, took: Duration) {
        let labels = self.result(how);
        self.all.calls.get_or_create(&labels).inc();
        self.all.durations.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// A failure has let others decide.
    pub(super) fn failed_open(&self, how: Called) {
        self.all.failed_open.get_or_create(&self.result(how)).inc();
    }

    /// Match conditions were evaluated.
    pub(super) fn conditions(&self, hold: &Result<bool, String>, took: Duration) {
        let labels = [("type", "Webhook".to_owned()), ("name", self.name.clone())];
        self.all.condition_durations.get_or_create(&labels).observe(took.as_secs_f64());
        match hold {
            Ok(true) => {}
            Ok(false) => drop(self.all.exclusions.get_or_create(&labels).inc()),
            Err(_) => drop(self.all.condition_errors.get_or_create(&labels).inc()),
        }
    }

    fn result(&self, how: Called) -> Labels<2> {
        [("name", self.name.clone()), ("result", how.name().to_owned())]
    }
}

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
            server: hash(server_id.as_bytes()),
            in_force: Mutex::default(),
        }
    }

    /// The first configuration is in force.
    pub(crate) fn started(&self, bytes: &[u8]) {
        self.put_in_force(bytes);
    }

    /// A changed configuration is in force.
    pub(crate) fn succeeded(&self, bytes: &[u8]) {
        self.ended("success");
        self.put_in_force(bytes);
    }

    fn put_in_force(&self, bytes: &[u8]) {
        let hash = hash(bytes);
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

fn hash(bytes: &[u8]) -> String {
    if bytes.is_empty() { String::new() } else { format!("sha256:{}", sha256_hex(bytes)) }
}
