//! Metrics of request bodies and watch events of local APIs, under upstream's names.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::RwLock;
use portico_kit::metrics::{Desc, Histogram, HistogramVec, Registry};
use portico_machinery::RequestInfo;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// Upstream's buckets: from 50,000 bytes in steps of 100,000.
const BODY_BYTES: &[f64] = &[
    5e4, 15e4, 25e4, 35e4, 45e4, 55e4, 65e4, 75e4, 85e4, 95e4, 105e4, 115e4, 125e4, 135e4, 145e4, 155e4,
    165e4, 175e4, 185e4, 195e4, 205e4, 215e4, 225e4, 235e4, 245e4, 255e4, 265e4, 275e4, 285e4, 295e4, 305e4,
];
/// Upstream's buckets: eight, doubling from 1 KiB.
const EVENT_BYTES: &[f64] = &[1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0, 131_072.0];

type Labels = [(&'static str, String); 3];
/// Group, version and name.
type Resource = [String; 3];

const VERBS: [&str; 5] = ["create", "update", "patch", "delete", "delete_collection"];

/// Metrics of local APIs.
#[derive(Clone)]
pub struct LocalMetrics {
    bodies: HistogramVec<Labels>,
    events: Family<Labels, Counter>,
    event_sizes: HistogramVec<Labels>,
    /// Resources that have series.
    resources: Arc<RwLock<HashSet<Resource>>>,
}

/// Metrics of one watch.
pub(super) struct WatchedEvents {
    count: Counter,
    sizes: Histogram,
}

impl LocalMetrics {
    /// Registers the metrics.
    #[must_use]
    pub fn new(registry: &Registry) -> Self {
        let events = registry.counter_vec(Desc::counter(
            "apiserver_watch_events_total",
            &["group", "resource", "version"],
            "[ALPHA] Number of events sent in watch clients",
        ));
        Self {
            bodies: registry.histogram_vec(
                Desc::histogram(
                    "apiserver_request_body_size_bytes",
                    &["group", "resource", "verb"],
                    "[ALPHA] Apiserver request body size in bytes broken out by resource and verb.",
                ),
                BODY_BYTES,
            ),
            events,
            event_sizes: registry.histogram_vec(
                Desc::histogram(
                    "apiserver_watch_events_sizes",
                    &["group", "resource", "version"],
                    "[ALPHA] Watch event size distribution in bytes",
                ),
                EVENT_BYTES,
            ),
            resources: Arc::default(),
        }
    }

    /// Records the body of a request for a served resource, for verbs that have a body.
    pub(super) fn record_body(&self, info: &RequestInfo, bytes: usize) {
        let verb = match info.verb.as_str() {
            "deletecollection" => "delete_collection",
            verb @ ("create" | "update" | "patch" | "delete") => verb,
            _ => return,
        };
        self.add_resource(info);
        let labels = body_labels(&info.api_group, &info.resource, verb);
        #[expect(clippy::cast_precision_loss, reason = "a histogram of sizes needs no exact bytes")]
        self.bodies.get_or_create(&labels).observe(bytes as f64);
    }

    /// Creates the metrics of a watch of a served resource.
    pub(super) fn watch_events(&self, info: &RequestInfo) -> WatchedEvents {
        self.add_resource(info);
        let labels = watch_labels(&info.api_group, &info.api_version, &info.resource);
        WatchedEvents {
            count: self.events.get_or_create_owned(&labels),
            sizes: self.event_sizes.get_or_create_owned(&labels),
        }
    }
}

impl LocalMetrics {
    /// Drops the series of resources whose group version is no longer served.
    pub fn retain(&self, is_served: impl Fn(&str, &str) -> bool) {
        let mut resources = self.resources.write();
        let dropped: Vec<Resource> =
            resources.extract_if(|[group, version, _]| !is_served(group, version)).collect();
        for [group, version, resource] in &dropped {
            let labels = watch_labels(group, version, resource);
            self.events.remove(&labels);
            self.event_sizes.remove(&labels);
            // Series of bodies have no version label.
            if !resources.iter().any(|[g, _, r]| (g, r) == (group, resource)) {
                for verb in VERBS {
                    self.bodies.remove(&body_labels(group, resource, verb));
                }
            }
        }
    }

    fn add_resource(&self, info: &RequestInfo) {
        let resource = [&info.api_group, &info.api_version, &info.resource].map(Clone::clone);
        if !self.resources.read().contains(&resource) {
            self.resources.write().insert(resource);
        }
    }
}

fn body_labels(group: &str, resource: &str, verb: &str) -> Labels {
    [("resource", resource.to_owned()), ("verb", verb.to_owned()), ("group", group.to_owned())]
}

fn watch_labels(group: &str, version: &str, resource: &str) -> Labels {
    [("group", group.to_owned()), ("version", version.to_owned()), ("resource", resource.to_owned())]
}

impl WatchedEvents {
    /// Records an event that was sent.
    pub(super) fn record_event(&self, bytes: usize) {
        self.count.inc();
        #[expect(clippy::cast_precision_loss, reason = "a histogram of sizes needs no exact bytes")]
        self.sizes.observe(bytes as f64);
    }
}

#[cfg(test)]
mod tests {
    use portico_kit::metrics::Format;

    use super::*;

    #[test]
    fn removing_a_version_keeps_the_series_of_other_versions() {
        let registry = Registry::new();
        let metrics = LocalMetrics::new(&registry);
        for version in ["v1beta1", "v1"] {
            let path = format!("/apis/a.example/{version}/widgets");
            metrics.record_body(&RequestInfo::parse("POST", &path, "").unwrap(), 1);
            metrics.watch_events(&RequestInfo::parse("GET", &path, "watch=1").unwrap()).record_event(1);
        }
        let bodies = "apiserver_request_body_size_bytes_count{resource=\"widgets\"";
        let events = |version| format!("version=\"{version}\",resource=\"widgets\"}} 1");
        let has = |text: &str| registry.encode(Format::Text).contains(text);
        metrics.retain(|_, version| version == "v1");
        assert!(has(bodies) && has(&events("v1")) && !has(&events("v1beta1")));
        metrics.retain(|_, _| false);
        assert!(!has(bodies) && !has(&events("v1")));
    }
}
