//! What is sent to peers, and what fails, under upstream's names.

use http::StatusCode;
use portico_kit::metrics::Registry;
use portico_machinery::RequestInfo;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

type Rerouted = [(&'static str, String); 4];

/// See the module. The resources are those that peers say they serve.
#[derive(Clone)]
pub struct PeerMetrics {
    rerouted: Family<Rerouted, Counter>,
    unread: Counter,
}

impl PeerMetrics {
    /// Registers them.
    #[must_use]
    pub fn new(registry: &Registry) -> Self {
        let help = "Total number of requests that were proxied to a peer kube-apiserver because the local apiserver was not capable \
                    of serving it, broken down by 'group', 'version', and 'resource' indicating the GVR of the request";
        let rerouted = registry.counter_vec("apiserver_rerouted_request_total", help);
        let help = "Total number of errors encountered while syncing discovery information from a peer kube-apiserver";
        let unread: Family<[(&'static str, &'static str); 1], Counter> =
            registry.counter_vec("apiserver_peer_discovery_sync_errors_total", help);
        Self { rerouted, unread: unread.get_or_create_owned(&[("type", "fetch_discovery")]) }
    }

    /// A request was answered by a peer, or was not.
    pub(super) fn rerouted(&self, request: &RequestInfo, code: StatusCode) {
        let labels = [
            ("code", code.as_str().to_owned()),
            ("group", request.api_group.clone()),
            ("version", request.api_version.clone()),
            ("resource", request.resource.clone()),
        ];
        self.rerouted.get_or_create(&labels).inc();
    }

    /// A peer did not say what it serves.
    pub(super) fn unread(&self) {
        self.unread.inc();
    }
}
