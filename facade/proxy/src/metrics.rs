//! What is counted here. Labels are bounded: stages and results, never names of backends.

use portico_kit::dial::DialError;
use portico_kit::metrics::Registry;
use portico_kit::tls::FaultKind;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::stage::Stage;

type Label = [(&'static str, &'static str); 1];

/// The proxy's metrics. `apiserver_request_terminations_total` is the chain's: see [`crate::Termination`].
#[derive(Clone, Debug)]
pub struct ProxyMetrics {
    dials: Family<Label, Counter>,
    missing_san: Counter,
    pub(crate) retries: Counter,
    pub(crate) upgrades: Gauge,
    pub(crate) transports: Gauge,
    pub(crate) connections: Gauge,
}

impl ProxyMetrics {
    /// Registers them.
    pub fn new(registry: &Registry) -> Self {
        Self {
            dials: registry.counter_vec(
                "portico_proxy_dials_total",
                "Connections opened to backends, by result: ok, or the stage that failed",
            ),
            missing_san: registry.counter(
                "apiserver_kube_aggregator_x509_missing_san_total",
                "Backend certificates without a subject alternative name",
            ),
            retries: registry.counter(
                "portico_proxy_retries_total",
                "Requests sent again because nothing of them had left this process",
            ),
            upgrades: registry.gauge("portico_proxy_upgraded_connections", "Upgraded connections now open"),
            transports: registry
                .gauge("portico_proxy_transports", "Distinct ways to reach a backend now held"),
            connections: registry
                .gauge("portico_proxy_idle_connections", "Idle connections at the last sweep"),
        }
    }

    pub(crate) fn dialled(&self, outcome: Result<(), Stage>) {
        let result = outcome.map_or_else(Stage::as_str, |()| "ok");
        self.dials.get_or_create(&[("result", result)]).inc();
    }

    pub(crate) fn certificate_refused(&self, error: &DialError) {
        if error.certificate().is_some_and(|fault| fault.kind == FaultKind::MissingSan) {
            self.missing_san.inc();
        }
    }
}
