//! Other servers behind the same address, to which requests are forwarded for APIs that only they serve.
//!
//! Mirrors upstream's `peerproxy`: a request is forwarded at most once, to any server that serves its resource. APIs of
//! definitions and APIServices are local to every server and never forwarded.

mod excluded_versions;
mod fetch;
mod follow;
mod metrics;

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use portico_machinery::RequestInfo;
use portico_proxy::RouteEntry;

pub use follow::PeerFollower;
pub use metrics::PeerMetrics;

/// Header that marks a request as forwarded by another server: it is never forwarded again.
const PROXIED: HeaderName = HeaderName::from_static("x-kubernetes-peer-proxied");

/// Peers by the resources that only they serve, as `group/version/resource`.
type PeerRoutes = HashMap<String, Vec<Arc<RouteEntry>>>;

/// Peers and the resources that only they serve.
pub struct Peers {
    routes: ArcSwap<PeerRoutes>,
    metrics: PeerMetrics,
}

impl Peers {
    /// Starts without peers; [`PeerFollower`] adds them.
    #[must_use]
    pub fn new(metrics: PeerMetrics) -> Self {
        Self { routes: ArcSwap::default(), metrics }
    }

    /// Returns a peer that serves the requested resource, if this server does not.
    #[must_use]
    pub fn find(&self, request: &RequestInfo, headers: &HeaderMap) -> Option<Arc<RouteEntry>> {
        let serving = self.routes.load();
        if serving.is_empty() || !request.is_resource_request || was_forwarded(headers) {
            return None;
        }
        let servers = serving.get(&key(&request.api_group, &request.api_version, &request.resource))?;
        servers.get(rand::random_range(0..servers.len())).cloned()
    }

    /// Records a forwarded request and its status code.
    pub fn record_forwarded(&self, request: &RequestInfo, code: StatusCode) {
        self.metrics.record_forwarded(request, code);
    }

    fn set_routes(&self, serving: PeerRoutes) {
        self.metrics.retain(|group, version, resource| serving.contains_key(&key(group, version, resource)));
        self.routes.store(Arc::new(serving));
    }
}

/// Marks a request as forwarded.
pub fn mark_forwarded(headers: &mut HeaderMap) {
    headers.insert(PROXIED, HeaderValue::from_static("true"));
}

/// True if another server has forwarded the request.
pub fn was_forwarded(headers: &HeaderMap) -> bool {
    headers.get(PROXIED).is_some_and(|value| value == "true")
}

fn key(group: &str, version: &str, resource: &str) -> String {
    format!("{group}/{version}/{resource}")
}
