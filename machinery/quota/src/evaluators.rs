//! Which kind is measured how, and which kinds a quota's resources are about.

use portico_machinery::GroupResource;

use crate::evaluator::Evaluator;
use crate::surroundings::Surroundings;
use crate::{claims, counts, devices, pods, services};

/// Kinds that are measured: more than counted.
const MEASURED: [(&str, &str); 4] =
    [("", "pods"), ("", "services"), ("", "persistentvolumeclaims"), ("resource.k8s.io", "resourceclaims")];

/// The evaluator of a kind: all kinds are counted, a few are measured.
#[must_use]
pub fn evaluator<'a>(resource: &GroupResource, surroundings: &'a Surroundings) -> Box<dyn Evaluator + 'a> {
    match (resource.group.as_str(), resource.resource.as_str()) {
        ("", "pods") => Box::new(pods::Pods),
        ("", "services") => Box::new(services::Services),
        ("", "persistentvolumeclaims") => Box::new(claims::Claims),
        ("resource.k8s.io", "resourceclaims") => Box::new(devices::ResourceClaims { surroundings }),
        ("" | "events.k8s.io", "events") => Box::new(counts::Uncounted),
        _ => Box::new(counts::Count::of(resource)),
    }
}

/// Whether objects of a kind may need any of a resource of quotas, whatever surrounds them.
#[must_use]
pub fn may_count(resource: &GroupResource, name: &str) -> bool {
    let surroundings = Surroundings::default();
    evaluator(resource, &surroundings).counts(name)
        || (is(resource, MEASURED[3]) && devices::is_extended_request(name))
}

/// The kinds whose objects need any of these resources of quotas, each once. Which of them are served is not known here.
#[must_use]
pub fn counted_resources<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<GroupResource> {
    let names: Vec<&str> = names.into_iter().collect();
    let measured = MEASURED.iter().map(|(group, resource)| GroupResource::new(*group, *resource));
    let mut all: Vec<GroupResource> =
        measured.filter(|resource| names.iter().any(|name| may_count(resource, name))).collect();
    for resource in names.iter().filter_map(|name| counts::counted_resource(name)) {
        if !MEASURED.iter().any(|measured| is(&resource, *measured)) && !all.contains(&resource) {
            all.push(resource);
        }
    }
    all
}

fn is(resource: &GroupResource, (group, name): (&str, &str)) -> bool {
    resource.group == group && resource.resource == name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_that_a_quota_counts_are_named_by_what_it_limits() {
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
