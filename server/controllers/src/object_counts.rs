//! Numbers of stored objects, counted once a minute (hook `storage-object-count-tracker-hook`).

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use portico_kit::metrics::{self, Desc};
use portico_kit::tasks::TaskSet;
use portico_machinery::flow_control::StoredObjects;
use portico_machinery::{GroupResource, Status};
use portico_registry::Registry;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// Number and size of stored objects by resource, including resources without objects that have had some.
pub type ObjectTotals = Vec<(GroupResource, StoredObjects)>;

/// Upstream's period.
const PERIOD: Duration = Duration::from_secs(60);

/// Counter of stored objects. Sets `apiserver_storage_objects`, upstream's old metric, and `apiserver_resource_objects`, the
/// new one.
pub struct ObjectCounts {
    by_name: Family<[(&'static str, String); 1], Gauge>,
    by_group: Family<[(&'static str, String); 2], Gauge>,
    counted_resources: HashSet<GroupResource>,
    sink: Box<dyn Fn(ObjectTotals) + Send + Sync>,
}

impl ObjectCounts {
    /// Registers the metrics; `sink` also receives the counts.
    #[must_use]
    pub fn new(metrics: &metrics::Registry, sink: impl Fn(ObjectTotals) + Send + Sync + 'static) -> Self {
        Self {
            by_name: metrics.gauge_vec(Desc::gauge(
                "apiserver_storage_objects",
                &["resource"],
                "[STABLE] [DEPRECATED, consider using apiserver_resource_objects instead] \
                 Number of stored objects at the time of last check split by kind. In case of a \
                 fetching error, the value will be -1.",
            )),
            by_group: metrics.gauge_vec(Desc::gauge(
                "apiserver_resource_objects",
                &["group", "resource"],
                "[ALPHA] Number of stored objects at the time of last check split by kind. In \
                 case of a fetching error, the value will be -1.",
            )),
            counted_resources: HashSet::new(),
            sink: Box::new(sink),
        }
    }

    /// Counts until `tasks` is cancelled.
    pub async fn run(mut self, registry: Registry, tasks: TaskSet) {
        let count = async {
            loop {
                self.count(registry.stored_objects().await);
                tokio::time::sleep(PERIOD).await;
            }
        };
        tasks.token().run_until_cancelled(count).await;
    }

    /// Sets the metrics; resources that are no longer counted get 0.
    fn count(&mut self, counted: Result<ObjectTotals, Box<Status>>) {
        let counted = match counted {
            Ok(counted) => counted,
            Err(status) => {
                tracing::warn!(error = %status, "cannot count stored objects");
                return self.counted_resources.iter().for_each(|resource| self.set_gauges(resource, -1));
            }
        };
        let counted: HashMap<GroupResource, StoredObjects> = counted.into_iter().collect();
        self.counted_resources.extend(counted.keys().cloned());
        let stored = |resource: &GroupResource| counted.get(resource).copied().unwrap_or_default();
        for resource in &self.counted_resources {
            self.set_gauges(resource, i64::try_from(stored(resource).count).unwrap_or(i64::MAX));
        }
        (self.sink)(
            self.counted_resources.iter().map(|resource| (resource.clone(), stored(resource))).collect(),
        );
    }

    fn set_gauges(&self, resource: &GroupResource, count: i64) {
        self.by_name.get_or_create(&[("resource", resource.to_string())]).set(count);
        let labels = [("group", resource.group.clone()), ("resource", resource.resource.clone())];
        self.by_group.get_or_create(&labels).set(count);
    }
}

#[cfg(test)]
mod tests {
    use portico_kit::metrics::Format;

    use super::*;

    #[test]
    fn deleted_resources_count_zero_and_a_failed_count_is_minus_one() {
        let registry = metrics::Registry::new();
        let mut counts = ObjectCounts::new(&registry, |_| {});
        let (leases, pods) =
            (GroupResource::new("coordination.k8s.io", "leases"), GroupResource::new("", "pods"));
        let objects = |count| StoredObjects { count, average_bytes: 7 };
        counts.count(Ok(vec![(leases.clone(), objects(2)), (pods, objects(1))]));
        counts.count(Ok(vec![(leases, objects(3))]));
        let text = registry.encode(Format::Text);
        for line in [
            "apiserver_storage_objects{resource=\"leases.coordination.k8s.io\"} 3",
            "apiserver_resource_objects{group=\"coordination.k8s.io\",resource=\"leases\"} 3",
            "apiserver_storage_objects{resource=\"pods\"} 0",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        counts.count(Err(Box::new(Status::internal("x"))));
        assert!(registry.encode(Format::Text).contains("apiserver_storage_objects{resource=\"pods\"} -1"));
    }
}
