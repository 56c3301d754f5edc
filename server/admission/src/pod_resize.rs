//! PodResizeValidator: a running pod can be resized only on Linux nodes, and only within the allocatable resources of its node.
//!
//! Upstream rules: plugin/pkg/admission/podresize.

use portico_machinery::status::Cause;
use portico_machinery::{Object, Quantity};
use portico_registry::{Objects, Operation};
use portico_validation::pod_spec::totals::{Amounts, add, amounts, counts_for_pods, of_spec};

use crate::plugin::{Plugin, Target, Validating, ValidationRequest};

const OS_LABEL: &str = "kubernetes.io/os";
const CAPACITY: &str = "NodeCapacity";
const PLATFORM: &str = "UnsupportedPlatform";

/// PodResizeValidator plugin.
pub(crate) struct PodResizeValidator;

impl Plugin for PodResizeValidator {
    fn targets(&self) -> &'static [Target] {
        &[("", "pods", "resize")]
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Update]
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> Validating<'a> {
        Box::pin(async move {
            let Some(name) = node_of_changed(&request) else { return Ok(Vec::new()) };
            let Some(node) = objects.object_of("", "nodes", "", name).await? else {
                return Err(request.forbidden(&format!("node {name:?} not found")));
            };
            match refusal(request.new, &node) {
                Some((why, reason)) => Err(Box::new(
                    request
                        .forbidden(&why)
                        .with_cause(Cause { reason: reason.to_owned(), ..Cause::default() }),
                )),
                None => Ok(Vec::new()),
            }
        })
    }
}

/// Returns the node of a pod, if the spec has changed and the pod is scheduled.
pub(crate) fn node_of_changed<'a>(request: &ValidationRequest<'a>) -> Option<&'a str> {
    let spec = |pod: &'a Object| pod.at(&["spec"]);
    let changed = request.old.is_some_and(|old| !spec(old).same_as(&spec(request.new)));
    Some(request.new.str_at("spec.nodeName")).filter(|node| changed && !node.is_empty())
}

/// Returns the message and upstream's reason if a node cannot run the resized pod.
fn refusal(pod: &Object, node: &Object) -> Option<(String, &'static str)> {
    if let Some(os) = node.label(OS_LABEL).filter(|os| *os != "linux") {
        let name = node.name();
        let why = format!("pod resize is only supported on linux nodes, node {name:?} is {os:?}");
        return Some((why, PLATFORM));
    }
    let spec = pod.at(&["spec"]);
    let mut requests = of_spec(&spec, "requests", counts_for_pods);
    add(&mut requests, &amounts(&spec.field("overhead")));
    let beyond = beyond(&requests, node);
    let why = || format!("node didn't have enough allocatable resources: {}", beyond.join("; "));
    (!beyond.is_empty()).then(|| (why(), CAPACITY))
}

/// Returns descriptions of the requested resources that exceed the node.
fn beyond(requests: &Amounts, node: &Object) -> Vec<String> {
    let mut beyond = Vec::new();
    for name in ["cpu", "memory"] {
        let number = |of: &Quantity| if name == "cpu" { of.milli_value() } else { of.value() };
        let requested = requests.get(name).cloned().unwrap_or_default();
        let allocatable = node.at(&["status", "allocatable"]).key(name).quantity().unwrap_or_default();
        if requested > allocatable {
            let (requested, allocatable) = (number(&requested), number(&allocatable));
            beyond.push(format!("{name}, requested: {requested}, allocatable: {allocatable}"));
        }
    }
    beyond
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_keeps_within_its_node() {
        let object = |json: &str| Object::from_json(json.as_bytes()).unwrap();
        let pod = object(
            r#"{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1500m","memory":"1Gi"}}}]}}"#,
        );
        for (node, why) in [
            (r#"{"status":{"allocatable":{"cpu":"2","memory":"2Gi"}}}"#, None),
            (
                r#"{"metadata":{"name":"n","labels":{"kubernetes.io/os":"linux"}},"status":{"allocatable":{"cpu":"1","memory":"2Gi"}}}"#,
                Some((
                    "node didn't have enough allocatable resources: cpu, requested: 1500, allocatable: 1000",
                    "NodeCapacity",
                )),
            ),
            (
                r"{}",
                Some((
                    "node didn't have enough allocatable resources: cpu, requested: 1500, allocatable: 0; memory, requested: 1073741824, allocatable: 0",
                    "NodeCapacity",
                )),
            ),
            (
                r#"{"metadata":{"name":"n","labels":{"kubernetes.io/os":"windows"}}}"#,
                Some((
                    "pod resize is only supported on linux nodes, node \"n\" is \"windows\"",
                    "UnsupportedPlatform",
                )),
            ),
        ] {
            let refused = refusal(&pod, &object(node));
            assert_eq!(refused.as_ref().map(|(why, reason)| (why.as_str(), *reason)), why, "{node}");
        }
    }
}
