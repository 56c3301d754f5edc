//! Usage of Pods: count, resource requests and limits.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use portico_machinery::{Cursor, Object};
use portico_validation::pod_spec::is_extended_resource;
use portico_validation::pod_spec::totals::{
    ResourceList, charged_resources, is_pod_level_resource, resource_list,
};

use crate::counts::one_each;
use crate::evaluator::Evaluator;
use crate::requirement::ScopeRequirement;

const COUNT: &str = "count/pods";
const PODS: &str = "pods";
/// Prefix of a resource in the quota resource that limits its requests.
pub(crate) const REQUESTS_PREFIX: &str = "requests.";
const LIMITS_PREFIX: &str = "limits.";
const HUGE_PAGES_PREFIX: &str = "hugepages-";
/// Prefix of a device class in the extended resource that each class implicitly provides.
pub(crate) const DEVICE_CLASS_PREFIX: &str = "deviceclass.resource.kubernetes.io/";
/// Resources that quotas limit under their own names (for requests), as requests and as limits.
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Quota resources that every container must set when they are limited: a mistake of upstream, kept for compatibility.
const REQUIRED_WHEN_LIMITED: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// Evaluator of Pods.
pub(crate) struct PodEvaluator;

impl Evaluator for PodEvaluator {
    fn matches_resource(&self, resource: &str) -> bool {
        let requested = resource.strip_prefix(REQUESTS_PREFIX);
        let compute = requested.or_else(|| resource.strip_prefix(LIMITS_PREFIX)).unwrap_or(resource);
        matches!(resource, COUNT | PODS)
            || COMPUTE.contains(&compute)
            || resource.starts_with(HUGE_PAGES_PREFIX)
            || requested.is_some_and(|name| name.starts_with(HUGE_PAGES_PREFIX) || is_extended_name(name))
    }

    fn usage(&self, pod: &Object, now: Timestamp) -> ResourceList {
        let mut usage = one_each([COUNT]);
        if is_charged(pod, now) {
            let (requests, limits) = charged_resources(pod);
            usage.extend(compute_usage(&requests, &limits));
        }
        usage
    }

    fn next_usage_change(&self, pod: &Object, now: Timestamp) -> Option<Timestamp> {
        end_of_grace(pod).filter(|end| now <= *end)
    }

    fn check_constraints(&self, limited: &[&str], pod: &Object) -> Result<(), String> {
        let spec = pod.at(&["spec"]);
        let pod_resources = spec.field("resources");
        if ["requests", "limits"]
            .iter()
            .any(|list| pod_resources.field(list).entries().any(|(n, _)| is_pod_level_resource(n)))
        {
            return Ok(());
        }
        let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for list in ["containers", "initContainers"] {
            for container in spec.field(list).items() {
                let resources = container.field("resources");
                let usage = compute_usage(
                    &resource_list(&resources.field("requests")),
                    &resource_list(&resources.field("limits")),
                );
                for name in limited.iter().filter(|name| REQUIRED_WHEN_LIMITED.contains(*name)) {
                    if !usage.contains_key(*name) {
                        missing.entry(name).or_default().push(container.field("name").str());
                    }
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let each = missing.into_iter().map(|(name, mut containers)| {
            containers.sort_unstable();
            containers.dedup();
            format!("{name} for: {}", containers.join(","))
        });
        Err(format!("must specify {}", each.collect::<Vec<_>>().join("; ")))
    }

    fn in_scope(&self, scope: &ScopeRequirement<'_>, pod: &Object) -> bool {
        let best_effort = || pod.str_at("status.qosClass") == "BestEffort";
        match scope.scope {
            "Terminating" => is_terminating(pod),
            "NotTerminating" => !is_terminating(pod),
            "BestEffort" => best_effort(),
            "NotBestEffort" => !best_effort(),
            "PriorityClass" => {
                let class = pod.str_at("spec.priorityClassName");
                scope.matches_values(if class.is_empty() { &[] } else { std::slice::from_ref(&class) })
            }
            "CrossNamespacePodAffinity" => has_cross_namespace_affinity(&pod.at(&["spec", "affinity"])),
            _ => false,
        }
    }
}

/// Converts requests and limits to quota resources (upstream's `podComputeUsageHelper`).
fn compute_usage(requests: &ResourceList, limits: &ResourceList) -> ResourceList {
    let mut usage = one_each([PODS]);
    for (name, amount) in requests {
        let (compute, huge) = (COMPUTE.contains(&name.as_str()), name.starts_with(HUGE_PAGES_PREFIX));
        if compute || huge {
            usage.insert(name.clone(), amount.clone());
        }
        if compute || huge || is_extended_resource(name) || name.starts_with(DEVICE_CLASS_PREFIX) {
            usage.insert(format!("{REQUESTS_PREFIX}{name}"), amount.clone());
        }
    }
    for (name, amount) in limits.iter().filter(|(name, _)| COMPUTE.contains(&name.as_str())) {
        usage.insert(format!("{LIMITS_PREFIX}{name}"), amount.clone());
    }
    usage
}

/// True if a requested resource is an extended one: with a domain, and not one of upstream's domains.
pub(crate) fn is_extended_name(name: &str) -> bool {
    name.starts_with(DEVICE_CLASS_PREFIX) || (name.contains('/') && !name.contains("kubernetes.io/"))
}

fn is_terminating(pod: &Object) -> bool {
    pod.at(&["spec", "activeDeadlineSeconds"]).i64().is_some_and(|seconds| seconds >= 0)
}

/// True if a pod is charged: it is not finished, and its grace period for termination is not over.
fn is_charged(pod: &Object, now: Timestamp) -> bool {
    if matches!(pod.str_at("status.phase"), "Failed" | "Succeeded") {
        return false;
    }
    end_of_grace(pod).is_none_or(|end| now <= end)
}

/// Returns the end of the grace period of a pod that is being deleted.
fn end_of_grace(pod: &Object) -> Option<Timestamp> {
    let deleted = pod.deletion_timestamp()?.parse::<Timestamp>().ok()?;
    let grace = pod.at(&["metadata", "deletionGracePeriodSeconds"]).i64()?;
    deleted.checked_add(SignedDuration::from_secs(grace)).ok()
}

/// True if affinity terms select pods of other namespaces.
fn has_cross_namespace_affinity(affinity: &Cursor<'_>) -> bool {
    let is_cross_namespace = |term: &Cursor<'_>| {
        !term.field("namespaces").is_empty() || term.field("namespaceSelector").is_present()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let kind = affinity.field(kind);
        kind.field("requiredDuringSchedulingIgnoredDuringExecution")
            .items()
            .any(|term| is_cross_namespace(&term))
            || kind
                .field("preferredDuringSchedulingIgnoredDuringExecution")
                .items()
                .any(|weighted| is_cross_namespace(&weighted.field("podAffinityTerm")))
    })
}
