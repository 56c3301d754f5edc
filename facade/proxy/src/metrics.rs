//! What is counted here. Labels are bounded: stages and results, never names of backends.

use portico_kit::dial::DialError;
use portico_kit::metrics::Registry;
use portico_kit::tls::FaultKind;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::stage::Stage;

type Label = [(&'static str, &'static str); 1];
type Code = [(&'static str, u16); 1];

/// Who translates a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handling {
    /// Nobody: its kubelet speaks it.
    ByKubelet,
    /// This process.
    Here,
}

/// The proxy's metrics. `apiserver_request_terminations_total` is the chain's: see [`crate::Termination`].
#[derive(Clone)]
pub struct ProxyMetrics {
    pub(crate) registry: Registry,
    dials: Family<Label, Counter>,
    missing_san: Counter,
    pub(crate) retries: Counter,
    repeated: Family<Label, Counter>,
    ejections: Counter,
    mirrored: Family<Label, Counter>,
    upgrades: Gauge,
    translator: Family<Code, Counter>,
    tunnels: Family<Code, Counter>,
    web_sockets: Family<[(&'static str, String); 2], Counter>,
    pub(crate) transports: Gauge,
    pub(crate) connections: Gauge,
}

impl ProxyMetrics {
    /// Registers them.
    pub fn new(registry: &Registry) -> Self {
        Self {
            registry: registry.clone(),
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
            repeated: registry.counter_vec(
                "portico_proxy_repeated_requests_total",
                "Requests sent again because a backend's policy asks for it, by what went wrong; too_many: not sent again",
            ),
            ejections: registry.counter(
                "portico_proxy_ejections_total",
                "Addresses of backends that were left out because a backend's policy asks for it",
            ),
            mirrored: registry.counter_vec(
                "portico_proxy_mirrored_requests_total",
                "Copies of requests for mirrors of backends, by what became of them: sent, dropped or failed",
            ),
            upgrades: registry.gauge("portico_proxy_upgraded_connections", "Upgraded connections now open"),
            translator: registry.counter_vec(
                "apiserver_stream_translator_requests_total",
                "Commands whose WebSocket was translated to SPDY, by the code of how that ended",
            ),
            tunnels: registry.counter_vec(
                "apiserver_stream_tunnel_requests_total",
                "Requests whose SPDY was taken out of a WebSocket, by the code of the answer",
            ),
            web_sockets: registry.counter_vec(
                "apiserver_websocket_streaming_requests_total",
                "Requests for streams of kubelets, by subresource and by who speaks WebSocket with the client",
            ),
            transports: registry
                .gauge("portico_proxy_transports", "Distinct ways to reach a backend now held"),
            connections: registry
                .gauge("portico_proxy_idle_connections", "Idle connections at the last sweep"),
        }
    }

    /// A request is sent again for this reason.
    pub(crate) fn repeated(&self, reason: &'static str) {
        self.repeated.get_or_create(&[("reason", reason)]).inc();
    }

    /// What became of a copy for a mirror.
    pub(crate) fn mirrored(&self, result: &'static str) {
        self.mirrored.get_or_create(&[("result", result)]).inc();
    }

    /// An address is left out.
    pub(crate) fn ejected(&self) {
        self.ejections.inc();
    }

    /// Counts an upgraded connection for as long as what is returned lives.
    pub(crate) fn upgrade(&self) -> OpenUpgrade {
        self.upgrades.inc();
        OpenUpgrade(self.upgrades.clone())
    }

    /// How the translation of a command's WebSocket ended.
    pub(crate) fn translated(&self, code: u16) {
        self.translator.get_or_create(&[("code", code)]).inc();
    }

    /// How a request for SPDY in messages was answered.
    pub(crate) fn tunnelled(&self, code: u16) {
        self.tunnels.get_or_create(&[("code", code)]).inc();
    }

    /// A request of this subresource: only such as the control service answers with somewhere to dial.
    pub(crate) fn web_socket(&self, subresource: &str, handling: Handling) {
        let handling = match handling {
            Handling::ByKubelet => "proxied_to_kubelet",
            Handling::Here => "translated_at_apiserver",
        };
        let labels = [("proxy_type", handling.to_owned()), ("subresource", subresource.to_owned())];
        self.web_sockets.get_or_create(&labels).inc();
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

/// An upgraded connection that is open.
pub(crate) struct OpenUpgrade(Gauge);

impl Drop for OpenUpgrade {
    fn drop(&mut self) {
        self.0.dec();
    }
}
