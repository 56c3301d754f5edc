//! Total resources of a pod: its containers aggregated as the scheduler does, its pod-level resources, and its overhead.

use std::collections::BTreeMap;

use portico_machinery::{Cursor, Object, Quantity};

use super::parts::is_sidecar;

/// Amounts by resource name (upstream's `ResourceList`).
pub type ResourceList = BTreeMap<String, Quantity>;

/// Reads a resource list.
pub fn resource_list(list: &Cursor<'_>) -> ResourceList {
    list.entries().map(|(name, value)| (name.to_owned(), value.quantity().unwrap_or_default())).collect()
}

/// Adds the amounts in `other` to `sums`.
pub fn add_resources(sums: &mut ResourceList, other: &ResourceList) {
    for (name, amount) in other {
        sums.entry(name.clone()).and_modify(|sum| *sum = sum.plus(amount)).or_insert_with(|| amount.clone());
    }
}

/// Replaces amounts in `most` by greater ones in `other`.
fn max_resources(most: &mut ResourceList, other: &ResourceList) {
    for (name, amount) in other {
        if most.get(name).is_none_or(|current| current <= amount) {
            most.insert(name.clone(), amount.clone());
        }
    }
}

/// Aggregates the needs of containers: the sum of containers and sidecars, or the peak during initialization if that is greater.
pub fn aggregate_containers(spec: &Cursor<'_>, need: impl Fn(&Cursor<'_>) -> ResourceList) -> ResourceList {
    let mut all = ResourceList::new();
    spec.field("containers").items().for_each(|container| add_resources(&mut all, &need(&container)));
    let (mut sidecars, mut init_peak) = (ResourceList::new(), ResourceList::new());
    for container in spec.field("initContainers").items() {
        let mut step = need(&container);
        if is_sidecar(&container) {
            add_resources(&mut all, &step);
            add_resources(&mut sidecars, &step);
            max_resources(&mut init_peak, &sidecars);
        } else {
            add_resources(&mut step, &sidecars);
            max_resources(&mut init_peak, &step);
        }
    }
    max_resources(&mut all, &init_peak);
    all
}

/// Returns `requests` or `limits` of a spec: the aggregate of its containers, replaced by pod-level resources for which
/// `applies`.
pub fn spec_resources(spec: &Cursor<'_>, list: &'static str, applies: impl Fn(&str) -> bool) -> ResourceList {
    let mut all =
        aggregate_containers(spec, |container| resource_list(&container.field("resources").field(list)));
    apply_pod_level(&mut all, spec, list, applies);
    all
}

/// Returns the requests and limits charged to a pod. During a resize, the greater of current and desired amounts counts.
pub fn charged_resources(pod: &Object) -> (ResourceList, ResourceList) {
    let (spec, overhead) = (pod.at(&["spec"]), resource_list(&pod.at(&["spec", "overhead"])));
    let resize = ResizeStatus::new(pod);
    let mut requests = aggregate_containers(&spec, |container| resize.requests(container));
    apply_pod_level(&mut requests, &spec, "requests", is_pod_level_resource);
    add_resources(&mut requests, &overhead);
    let mut limits = aggregate_containers(&spec, |container| resize.limits(container));
    apply_pod_level(&mut limits, &spec, "limits", is_pod_level_resource);
    for (name, amount) in &overhead {
        if let Some(limit) = limits.get_mut(name).filter(|limit| !limit.is_zero()) {
            *limit = limit.plus(amount);
        }
    }
    (requests, limits)
}

/// True if the resource can be set at pod level (upstream's `IsSupportedPodLevelResource`).
pub fn is_pod_level_resource(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

fn apply_pod_level(
    all: &mut ResourceList,
    spec: &Cursor<'_>,
    list: &'static str,
    applies: impl Fn(&str) -> bool,
) {
    let pod_resources = resource_list(&spec.field("resources").field(list));
    all.extend(pod_resources.into_iter().filter(|(name, _)| applies(name)));
}

/// Current resources of containers, which differ from the spec during a resize.
struct ResizeStatus<'a> {
    statuses: BTreeMap<&'a str, Cursor<'a>>,
    is_infeasible: bool,
}

impl<'a> ResizeStatus<'a> {
    fn new(pod: &'a Object) -> Self {
        let status = pod.at(&["status"]);
        let lists = ["containerStatuses", "initContainerStatuses"];
        let statuses =
            lists.into_iter().flat_map(|list| pod.at(&["status", list]).items().collect::<Vec<_>>());
        let pending = |condition: &Cursor<'_>| condition.field("type").str() == "PodResizePending";
        let pending = status.field("conditions").items().find(pending);
        Self {
            statuses: statuses.map(|status| (status.field("name").str(), status)).collect(),
            is_infeasible: pending.is_some_and(|condition| condition.field("reason").str() == "Infeasible"),
        }
    }

    /// Returns the status of a container, if it reports resources. Init containers that ended before the resize report none.
    fn status(&self, container: &Cursor<'_>) -> Option<&Cursor<'a>> {
        let status = self.statuses.get(container.field("name").str())?;
        status.field("resources").is_present().then_some(status)
    }

    fn requests(&self, container: &Cursor<'_>) -> ResourceList {
        let desired = resource_list(&container.field("resources").field("requests"));
        let Some(status) = self.status(container) else { return desired };
        let mut most = if self.is_infeasible { ResourceList::new() } else { desired };
        max_resources(&mut most, &resource_list(&status.field("resources").field("requests")));
        max_resources(&mut most, &resource_list(&status.field("allocatedResources")));
        most
    }

    fn limits(&self, container: &Cursor<'_>) -> ResourceList {
        let desired = resource_list(&container.field("resources").field("limits"));
        let Some(status) = self.status(container) else { return desired };
        let mut most = if self.is_infeasible { ResourceList::new() } else { desired };
        max_resources(&mut most, &resource_list(&status.field("resources").field("limits")));
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn init_containers_count_if_they_need_more_than_all_later_containers() {
        let spec = br#"{"containers":[{"resources":{"requests":{"cpu":"1","memory":"1Gi"}}},
                {"resources":{"requests":{"cpu":"500m"}}}],
            "initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},
                {"resources":{"requests":{"cpu":"4","memory":"512Mi"}}}]}"#;
        let spec = Object::from_json(spec).unwrap();
        let all = spec_resources(&spec.cursor(), "requests", is_pod_level_resource);
        assert_eq!(all["cpu"].to_string(), "5");
        assert_eq!(all["memory"].to_string(), "1Gi");
    }

    #[test]
    fn pod_level_resources_replace_the_sum_and_overhead_is_added() {
        let pod = br#"{"spec":{"overhead":{"cpu":"100m","memory":"1Mi"},"resources":{"requests":{"cpu":"3"}},
            "containers":[{"name":"c","resources":{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}}]}}"#;
        let (requests, limits) = charged_resources(&Object::from_json(pod).unwrap());
        assert_eq!(
            (requests["cpu"].to_string(), requests["memory"].to_string()),
            ("3100m".into(), "1Mi".into())
        );
        assert_eq!((limits["cpu"].to_string(), limits.get("memory")), ("2100m".into(), None));
    }

    #[test]
    fn a_resize_in_progress_counts_as_the_greater_of_current_and_desired() {
        let mut pod = Object::from_json(
            br#"{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]},
            "status":{"containerStatuses":[{"name":"c","resources":{"requests":{"cpu":"2"}},
                "allocatedResources":{"cpu":"3"}}]}}"#,
        )
        .unwrap();
        assert_eq!(charged_resources(&pod).0["cpu"].to_string(), "3");
        let mut condition = Object::default();
        condition.set(&["type"], "PodResizePending");
        condition.set(&["reason"], "Infeasible");
        pod.push_node(&["status", "conditions"], condition.into_node());
        pod.edit_each(&["spec", "containers"], |container| {
            container.set(&["resources", "requests", "cpu"], "9");
        });
        assert_eq!(charged_resources(&pod).0["cpu"].to_string(), "3", "an infeasible resize is not counted");
    }
}
