//! Pods: how many, and what they request and are limited to.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use portico_machinery::{Cursor, Object};
use portico_validation::pod_spec::is_extended;
use portico_validation::pod_spec::totals::{Amounts, amounts, counted, counts_for_pods};

use crate::counts::one_of;
use crate::evaluator::Evaluator;
use crate::requirement::Requirement;

const COUNT: &str = "count/pods";
const PODS: &str = "pods";
/// Before the name of a resource, as quotas limit requests of it.
pub(crate) const REQUESTS: &str = "requests.";
const LIMITS: &str = "limits.";
const HUGE: &str = "hugepages-";
/// Before the name of a device class in the extended resource that it stands for by itself.
pub(crate) const DEVICES: &str = "deviceclass.resource.kubernetes.io/";
/// What is limited under its own name (of requests), as a request and as a limit.
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// What every container must set when it is limited: a mistake of upstream's that stays.
const MUST_BE_SET: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// How pods are measured.
pub(crate) struct Pods;

impl Evaluator for Pods {
    fn counts(&self, resource: &str) -> bool {
        let requested = resource.strip_prefix(REQUESTS);
        let compute = requested.or_else(|| resource.strip_prefix(LIMITS)).unwrap_or(resource);
        matches!(resource, COUNT | PODS)
            || COMPUTE.contains(&compute)
            || resource.starts_with(HUGE)
            || requested.is_some_and(|name| name.starts_with(HUGE) || is_extended_name(name))
    }

    fn usage(&self, pod: &Object, now: Timestamp) -> Amounts {
        let mut usage = one_of([COUNT]);
        if is_alive(pod, now) {
            let (requests, limits) = counted(pod);
            usage.extend(compute(&requests, &limits));
        }
        usage
    }

    fn changes_at(&self, pod: &Object, now: Timestamp) -> Option<Timestamp> {
        end_of_grace(pod).filter(|end| now <= *end)
    }

    fn constraints(&self, limited: &[&str], pod: &Object) -> Result<(), String> {
        let spec = pod.at(&["spec"]);
        let own = spec.field("resources");
        if ["requests", "limits"]
            .iter()
            .any(|list| own.field(list).entries().any(|(n, _)| counts_for_pods(n)))
        {
            return Ok(());
        }
        let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for list in ["containers", "initContainers"] {
            for container in spec.field(list).items() {
                let resources = container.field("resources");
                let set =
                    compute(&amounts(&resources.field("requests")), &amounts(&resources.field("limits")));
                for name in limited.iter().filter(|name| MUST_BE_SET.contains(*name)) {
                    if !set.contains_key(*name) {
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

    fn in_scope(&self, scope: &Requirement<'_>, pod: &Object) -> bool {
        let best_effort = || pod.str_at("status.qosClass") == "BestEffort";
        match scope.scope {
            "Terminating" => is_terminating(pod),
            "NotTerminating" => !is_terminating(pod),
            "BestEffort" => best_effort(),
            "NotBestEffort" => !best_effort(),
            "PriorityClass" => {
                let class = pod.str_at("spec.priorityClassName");
                scope.takes(if class.is_empty() { &[] } else { std::slice::from_ref(&class) })
            }
            "CrossNamespacePodAffinity" => is_beside_others(&pod.at(&["spec", "affinity"])),
            _ => false,
        }
    }
}

/// What requests and limits come to in the resources of quotas.
fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = one_of([PODS]);
    for (name, amount) in requests {
        let (compute, huge) = (COMPUTE.contains(&name.as_str()), name.starts_with(HUGE));
        if compute || huge {
            usage.insert(name.clone(), amount.clone());
        }
        if compute || huge || is_extended(name) || name.starts_with(DEVICES) {
            usage.insert(format!("{REQUESTS}{name}"), amount.clone());
        }
    }
    for (name, amount) in limits.iter().filter(|(name, _)| COMPUTE.contains(&name.as_str())) {
        usage.insert(format!("{LIMITS}{name}"), amount.clone());
    }
    usage
}

/// Whether a requested resource is an extended one: with a domain, and not one of upstream's own.
pub(crate) fn is_extended_name(name: &str) -> bool {
    name.starts_with(DEVICES) || (name.contains('/') && !name.contains("kubernetes.io/"))
}

fn is_terminating(pod: &Object) -> bool {
    pod.at(&["spec", "activeDeadlineSeconds"]).i64().is_some_and(|seconds| seconds >= 0)
}

/// Whether a pod uses anything: it has not ended, and is not past the time that it was given to end.
fn is_alive(pod: &Object, now: Timestamp) -> bool {
    if matches!(pod.str_at("status.phase"), "Failed" | "Succeeded") {
        return false;
    }
    end_of_grace(pod).is_none_or(|end| now <= end)
}

/// When a pod that is being deleted has had the time that it was given to end.
fn end_of_grace(pod: &Object) -> Option<Timestamp> {
    let deleted = pod.deletion_timestamp()?.parse::<Timestamp>().ok()?;
    let grace = pod.at(&["metadata", "deletionGracePeriodSeconds"]).i64()?;
    deleted.checked_add(SignedDuration::from_secs(grace)).ok()
}

/// Whether affinities look into other namespaces.
fn is_beside_others(affinity: &Cursor<'_>) -> bool {
    let beyond = |term: &Cursor<'_>| {
        !term.field("namespaces").is_empty() || term.field("namespaceSelector").is_present()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let kind = affinity.field(kind);
        kind.field("requiredDuringSchedulingIgnoredDuringExecution").items().any(|term| beyond(&term))
            || kind
                .field("preferredDuringSchedulingIgnoredDuringExecution")
                .items()
                .any(|weighted| beyond(&weighted.field("podAffinityTerm")))
    })
}
