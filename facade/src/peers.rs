//! Other servers behind the same address: what they serve and this one does not is answered by them.
//!
//! Upstream's `peerproxy`: a request goes on at most once, to any server that serves its resource. What definitions and APIServices
//! serve is every server's own: it is never sent to peers.

mod excluded;
mod fetch;
mod follow;
mod metrics;

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use portico_machinery::RequestInfo;
use portico_proxy::Upstream;

pub use follow::Follow;
pub use metrics::PeerMetrics;

/// Says that another server has sent the request on: it is answered here, whatever comes of it.
const PROXIED: HeaderName = HeaderName::from_static("x-kubernetes-peer-proxied");

/// Servers by what only they serve, as `group/version/resource`.
type Serving = HashMap<String, Vec<Arc<Upstream>>>;

/// See the module.
pub struct Peers {
    serving: ArcSwap<Serving>,
    metrics: PeerMetrics,
}

impl Peers {
    /// Knows of no peer until [`Follow`] has looked.
    #[must_use]
    pub fn new(metrics: PeerMetrics) -> Self {
        Self { serving: ArcSwap::default(), metrics }
    }

    /// A server that serves what is asked for, where this one does not.
    #[must_use]
    pub fn serving(&self, request: &RequestInfo, headers: &HeaderMap) -> Option<Arc<Upstream>> {
        let serving = self.serving.load();
        if serving.is_empty() || !request.is_resource_request || was_proxied(headers) {
            return None;
        }
        let servers = serving.get(&key(&request.api_group, &request.api_version, &request.resource))?;
        servers.get(rand::random_range(0..servers.len())).cloned()
    }

    /// A request was answered by a peer, or was not.
    pub fn rerouted(&self, request: &RequestInfo, code: StatusCode) {
        self.metrics.rerouted(request, code);
    }

    fn set(&self, serving: Serving) {
        self.metrics.retain(|group, version, resource| serving.contains_key(&key(group, version, resource)));
        self.serving.store(Arc::new(serving));
    }
}

/// Marks a request that is sent on.
pub fn mark_proxied(headers: &mut HeaderMap) {
    headers.insert(PROXIED, HeaderValue::from_static("true"));
}

/// True if another facade has sent the request on.
pub fn was_proxied(headers: &HeaderMap) -> bool {
    headers.get(PROXIED).is_some_and(|value| value == "true")
}

fn key(group: &str, version: &str, resource: &str) -> String {
    format!("{group}/{version}/{resource}")
}
