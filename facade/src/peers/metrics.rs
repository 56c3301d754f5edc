//! Metrics of requests to peers and of failures, under upstream's names.

use std::collections::HashSet;
use std::sync::Arc;

use http::StatusCode;
use parking_lot::RwLock;
use portico_kit::metrics::{Desc, Registry};
use portico_machinery::RequestInfo;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

type ReroutedLabels = [(&'static str, String); 4];

/// Metrics of peers. Labels are resources that the discovery of peers contains.
#[derive(Clone)]
pub struct PeerMetrics {
    rerouted: Family<ReroutedLabels, Counter>,
    /// Labels that have series.
    series: Arc<RwLock<HashSet<ReroutedLabels>>>,
    failed_fetches: Counter,
}

impl PeerMetrics {
    /// Registers the metrics.
    #[must_use]
    pub fn new(registry: &Registry) -> Self {
        let rerouted = registry.counter_vec(Desc::counter(
            "apiserver_rerouted_request_total",
            &["code", "group", "resource", "version"],
            "[ALPHA] Total number of requests that were proxied to a peer kube-apiserver \
             because the local apiserver was not capable of serving it, broken down by \
             'group', 'version', and 'resource' indicating the GVR of the request",
        ));
        let unread: Family<[(&'static str, &'static str); 1], Counter> = registry.counter_vec(Desc::counter(
            "apiserver_peer_discovery_sync_errors_total",
            &["type"],
            "[ALPHA] Total number of errors encountered while syncing discovery \
             information from a peer kube-apiserver",
        ));
        Self {
            rerouted,
            series: Arc::default(),
            failed_fetches: unread.get_or_create_owned(&[("type", "fetch_discovery")]),
        }
    }

    /// Records a forwarded request and its status code.
    pub(super) fn record_forwarded(&self, request: &RequestInfo, code: StatusCode) {
        let labels = [
            ("code", code.as_str().to_owned()),
            ("group", request.api_group.clone()),
            ("version", request.api_version.clone()),
            ("resource", request.resource.clone()),
        ];
        self.rerouted.get_or_create(&labels).inc();
        if !self.series.read().contains(&labels) {
            self.series.write().insert(labels);
        }
    }

    /// Drops the series of resources (group, version and name) that no peer serves anymore.
    pub(super) fn retain(&self, is_served: impl Fn(&str, &str, &str) -> bool) {
        self.series.write().retain(|labels| {
            let [_, (_, group), (_, version), (_, resource)] = labels;
            let stays = is_served(group, version, resource);
            if !stays {
                self.rerouted.remove(labels);
            }
            stays
        });
    }

    /// Records a failed fetch of discovery.
    pub(super) fn record_failed_fetch(&self) {
        self.failed_fetches.inc();
    }
}

#[cfg(test)]
mod tests {
    use portico_kit::metrics::Format;

    use super::*;

    #[test]
    fn a_resource_that_no_peer_serves_has_no_series() {
        let registry = Registry::new();
        let metrics = PeerMetrics::new(&registry);
        for resource in ["widgets", "gadgets"] {
            let path = format!("/apis/a.example/v1/{resource}");
            metrics.record_forwarded(&RequestInfo::parse("GET", &path, "").unwrap(), StatusCode::OK);
        }
        metrics
            .retain(|group, version, resource| [group, version, resource] == ["a.example", "v1", "gadgets"]);
        let text = registry.encode(Format::Text);
        assert!(text.contains("resource=\"gadgets\"") && !text.contains("resource=\"widgets\""), "{text}");
    }
}
