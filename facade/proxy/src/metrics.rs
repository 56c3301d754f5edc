//! Metrics of the proxy. Labels are bounded: stages and results, never names of backends.

use portico_kit::dial::DialError;
use portico_kit::metrics::{Desc, Registry};
use portico_kit::tls::FaultKind;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::stage::Stage;

type Label = [(&'static str, &'static str); 1];
type Code = [(&'static str, u16); 1];

/// Translator of a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handling {
    /// The kubelet supports the protocol; there is no translation.
    ByKubelet,
    /// This process translates.
    ByProxy,
}

/// Metrics of the proxy. `apiserver_request_terminations_total` belongs to the handler chain: see [`crate::Termination`].
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
    /// Registers the metrics.
    pub fn new(registry: &Registry) -> Self {
        Self {
            registry: registry.clone(),
            dials: registry.counter_vec(Desc::counter(
                "portico_proxy_dials_total",
                &["result"],
                "Attempts to open a connection to a backend, by result: ok or the stage that \
                 failed",
            )),
            missing_san: registry.counter(Desc::counter(
                "apiserver_kube_aggregator_x509_missing_san_total",
                &[],
                "[ALPHA] Counts the number of requests to servers missing SAN extension in \
                 their serving certificate OR the number of connection failures due to the lack \
                 of x509 certificate SAN extension missing (either/or, based on the runtime \
                 environment)",
            )),
            retries: registry.counter(Desc::counter(
                "portico_proxy_retries_total",
                &[],
                "Requests sent again because no part of them had been sent",
            )),
            repeated: registry.counter_vec(Desc::counter(
                "portico_proxy_repeated_requests_total",
                &["reason"],
                "Requests retried according to a backend policy, by reason; too_many counts \
                 retries that were suppressed",
            )),
            ejections: registry.counter(Desc::counter(
                "portico_proxy_ejections_total",
                &[],
                "Addresses of backends that were ejected temporarily according to a backend \
                 policy",
            )),
            mirrored: registry.counter_vec(Desc::counter(
                "portico_proxy_mirrored_requests_total",
                &["result"],
                "Copies of requests for mirror backends, by result: sent, dropped or failed",
            )),
            upgrades: registry.gauge(Desc::gauge(
                "portico_proxy_upgraded_connections",
                &[],
                "Open upgraded connections to backends",
            )),
            translator: registry.counter_vec(Desc::counter(
                "apiserver_stream_translator_requests_total",
                &["code"],
                "[ALPHA] Total number of requests that were handled by the \
                 StreamTranslatorProxy, which processes streaming RemoteCommand/V5",
            )),
            tunnels: registry.counter_vec(Desc::counter(
                "apiserver_stream_tunnel_requests_total",
                &["code"],
                "[ALPHA] Total number of requests that were handled by the StreamTunnelProxy, \
                 which processes streaming PortForward/V2",
            )),
            web_sockets: registry.counter_vec(Desc::counter(
                "apiserver_websocket_streaming_requests_total",
                &["proxy_type", "subresource"],
                "[ALPHA] Total number of WebSocket streaming requests \
                 (exec/attach/portforward) routed by the API server, labeled by subresource and \
                 proxy_type. proxy_type is proxied_to_kubelet when the kubelet handles the \
                 request directly; otherwise translated_at_apiserver.",
            )),
            transports: registry.gauge(Desc::gauge(
                "portico_proxy_transports",
                &[],
                "Distinct transport configurations for backends in use",
            )),
            connections: registry.gauge(Desc::gauge(
                "portico_proxy_idle_connections",
                &[],
                "Idle connections to backends when they were last counted",
            )),
        }
    }

    /// Counts a retry for this reason.
    pub(crate) fn record_retry(&self, reason: &'static str) {
        self.repeated.get_or_create(&[("reason", reason)]).inc();
    }

    /// Counts a copy for a mirror by its result.
    pub(crate) fn record_mirrored(&self, result: &'static str) {
        self.mirrored.get_or_create(&[("result", result)]).inc();
    }

    /// Counts the ejection of an address.
    pub(crate) fn record_ejection(&self) {
        self.ejections.inc();
    }

    /// Counts an upgraded connection until the returned guard is dropped.
    pub(crate) fn track_upgrade(&self) -> OpenUpgrade {
        self.upgrades.inc();
        OpenUpgrade(self.upgrades.clone())
    }

    /// Counts a translated command by its status code.
    pub(crate) fn record_translation(&self, code: u16) {
        self.translator.get_or_create(&[("code", code)]).inc();
    }

    /// Counts a request for tunneled SPDY by the status code of its response.
    pub(crate) fn record_tunnel(&self, code: u16) {
        self.tunnels.get_or_create(&[("code", code)]).inc();
    }

    /// Counts a WebSocket request by subresource: only requests for which the control service returned a target.
    pub(crate) fn record_web_socket(&self, subresource: &str, handling: Handling) {
        let handling = match handling {
            Handling::ByKubelet => "proxied_to_kubelet",
            Handling::ByProxy => "translated_at_apiserver",
        };
        let labels = [("proxy_type", handling.to_owned()), ("subresource", subresource.to_owned())];
        self.web_sockets.get_or_create(&labels).inc();
    }

    pub(crate) fn record_dial(&self, outcome: Result<(), Stage>) {
        let result = outcome.map_or_else(Stage::as_str, |()| "ok");
        self.dials.get_or_create(&[("result", result)]).inc();
    }

    pub(crate) fn record_certificate_refusal(&self, error: &DialError) {
        if error.certificate().is_some_and(|fault| fault.kind == FaultKind::MissingSan) {
            self.missing_san.inc();
        }
    }
}

/// Guard of the count of open upgraded connections.
pub(crate) struct OpenUpgrade(Gauge);

impl Drop for OpenUpgrade {
    fn drop(&mut self) {
        self.0.dec();
    }
}
