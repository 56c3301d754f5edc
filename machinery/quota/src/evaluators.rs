//! Selection of the evaluator of a kind, and of the kinds that use the resources of a quota.

use portico_machinery::GroupResource;

use crate::device_context::DeviceContext;
use crate::evaluator::Evaluator;
use crate::{claims, counts, devices, pods, services};

/// Kinds whose usage is more than a count.
const MEASURED_RESOURCES: [(&str, &str); 4] =
    [("", "pods"), ("", "services"), ("", "persistentvolumeclaims"), ("resource.k8s.io", "resourceclaims")];

/// Returns the evaluator of a kind: all kinds are counted, for some more is measured.
#[must_use]
pub fn evaluator<'a>(resource: &GroupResource, context: &'a DeviceContext) -> Box<dyn Evaluator + 'a> {
    match (resource.group.as_str(), resource.resource.as_str()) {
        ("", "pods") => Box::new(pods::PodEvaluator),
        ("", "services") => Box::new(services::ServiceEvaluator),
        ("", "persistentvolumeclaims") => Box::new(claims::PersistentVolumeClaimEvaluator),
        ("resource.k8s.io", "resourceclaims") => Box::new(devices::ResourceClaimEvaluator { context }),
        ("" | "events.k8s.io", "events") => Box::new(counts::UncountedEvaluator),
        _ => Box::new(counts::CountEvaluator::new(resource)),
    }
}

/// True if objects of a kind may use a quota resource in some [`DeviceContext`].
#[must_use]
pub fn may_match_resource(resource: &GroupResource, name: &str) -> bool {
    let context = DeviceContext::default();
    evaluator(resource, &context).matches_resource(name)
        || (is_resource(resource, MEASURED_RESOURCES[3]) && devices::is_extended_request(name))
}

/// Returns the kinds whose objects use any of these quota resources, without duplicates. The kinds may not be served.
#[must_use]
pub fn counted_resources<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<GroupResource> {
    let names: Vec<&str> = names.into_iter().collect();
    let measured = MEASURED_RESOURCES.iter().map(|(group, resource)| GroupResource::new(*group, *resource));
    let mut all: Vec<GroupResource> =
        measured.filter(|resource| names.iter().any(|name| may_match_resource(resource, name))).collect();
    for resource in names.iter().filter_map(|name| counts::counted_resource(name)) {
        if !MEASURED_RESOURCES.iter().any(|measured| is_resource(&resource, *measured))
            && !all.contains(&resource)
        {
            all.push(resource);
        }
    }
    all
}

fn is_resource(resource: &GroupResource, (group, name): (&str, &str)) -> bool {
    resource.group == group && resource.resource == name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_that_a_quota_counts_follow_from_its_resources() {
        for (name, kinds) in [
            ("pods", vec![("", "pods")]),
            ("limits.memory", vec![("", "pods")]),
            ("requests.hugepages-2Mi", vec![("", "pods")]),
            ("requests.example.com/gpu", vec![("", "pods"), ("resource.k8s.io", "resourceclaims")]),
            ("gold.storageclass.storage.k8s.io/requests.storage", vec![("", "persistentvolumeclaims")]),
            ("services.nodeports", vec![("", "services")]),
            ("gpu.deviceclass.resource.k8s.io/devices", vec![("resource.k8s.io", "resourceclaims")]),
            ("secrets", vec![("", "secrets")]),
            ("count/secrets", vec![("", "secrets")]),
            ("count/pods", vec![("", "pods")]),
            ("count/widgets.example.com", vec![("example.com", "widgets")]),
            ("count/events", vec![]),
            ("count/events.events.k8s.io", vec![]),
            ("example.com/gpu", vec![]),
        ] {
            let kinds: Vec<GroupResource> =
                kinds.iter().map(|(group, resource)| GroupResource::new(*group, *resource)).collect();
            assert_eq!(counted_resources([name]), kinds, "{name}");
        }
    }
}
