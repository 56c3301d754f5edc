//! Which kind is measured how.

use portico_machinery::GroupResource;

use super::evaluator::Evaluator;
use super::{claims, counts, devices, pods, services};

/// The evaluator of a kind: all kinds are counted, a few are measured.
pub(super) fn evaluator(resource: &GroupResource) -> Box<dyn Evaluator> {
    match (resource.group.as_str(), resource.resource.as_str()) {
        ("", "pods") => Box::new(pods::Pods),
        ("", "services") => Box::new(services::Services),
        ("", "persistentvolumeclaims") => Box::new(claims::Claims),
        ("resource.k8s.io", "resourceclaims") => Box::new(devices::ResourceClaims),
        ("" | "events.k8s.io", "events") => Box::new(counts::Uncounted),
        _ => Box::new(counts::Count::of(resource)),
    }
}
