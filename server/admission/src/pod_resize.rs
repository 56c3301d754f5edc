//! PodResizeValidator: a running pod can be resized only on Linux nodes, and only within the allocatable resources of its node.
//!
//! Upstream rules: plugin/pkg/admission/podresize.

use portico_machinery::status::Cause;
use portico_machinery::{Object, Quantity};
use portico_registry::{Objects, Operation};
use portico_validation::pod_spec::totals::{
    ResourceList, add_resources, is_pod_level_resource, resource_list, spec_resources,
};

use crate::plugin::{Plugin, ResourcePattern, ValidationFuture, ValidationRequest};

const OS_LABEL: &str = "kubernetes.io/os";
const CAPACITY: &str = "NodeCapacity";
const PLATFORM: &str = "UnsupportedPlatform";

/// PodResizeValidator plugin.
pub(crate) struct PodResizeValidator;

impl Plugin for PodResizeValidator {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[("", "pods", "resize")]
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Update]
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            let Some(name) = node_of_changed_pod(&request) else { return Ok(Vec::new()) };
            let Some(node) = objects.object_of("", "nodes", "", name).await? else {
                return Err(request.forbidden(&format!("node {name:?} not found")));
            };
            match refusal(request.new, &node) {
                Some((message, reason)) => Err(Box::new(
                    request
                        .forbidden(&message)
                        .with_cause(Cause { reason: reason.to_owned(), ..Cause::default() }),
                )),
                None => Ok(Vec::new()),
            }
        })
    }
}

/// Returns the node of a pod, if the spec has changed and the pod is scheduled.
pub(crate) fn node_of_changed_pod<'a>(request: &ValidationRequest<'a>) -> Option<&'a str> {
    let spec = |pod: &'a Object| pod.at(&["spec"]);
    let changed = request.old.is_some_and(|old| !spec(old).same_as(&spec(request.new)));
    Some(request.new.str_at("spec.nodeName")).filter(|node| changed && !node.is_empty())
}

/// Returns the message and upstream's reason if a node cannot run the resized pod.
fn refusal(pod: &Object, node: &Object) -> Option<(String, &'static str)> {
    if let Some(os) = node.label(OS_LABEL).filter(|os| *os != "linux") {
        let name = node.name();
        let message = format!("pod resize is only supported on linux nodes, node {name:?} is {os:?}");
        return Some((message, PLATFORM));
    }
    let spec = pod.at(&["spec"]);
    let mut requests = spec_resources(&spec, "requests", is_pod_level_resource);
    add_resources(&mut requests, &resource_list(&spec.field("overhead")));
    let exceeded = exceeded_resources(&requests, node);
    let message = || format!("node didn't have enough allocatable resources: {}", exceeded.join("; "));
    (!exceeded.is_empty()).then(|| (message(), CAPACITY))
}

/// Returns descriptions of the requested resources that exceed the node.
fn exceeded_resources(requests: &ResourceList, node: &Object) -> Vec<String> {
    let mut exceeded = Vec::new();
    for name in ["cpu", "memory"] {
        let number =
            |quantity: &Quantity| if name == "cpu" { quantity.milli_value() } else { quantity.value() };
        let requested = requests.get(name).cloned().unwrap_or_default();
        let allocatable = node.at(&["status", "allocatable"]).key(name).quantity().unwrap_or_default();
        if requested > allocatable {
            let (requested, allocatable) = (number(&requested), number(&allocatable));
            exceeded.push(format!("{name}, requested: {requested}, allocatable: {allocatable}"));
        }
    }
    exceeded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_cannot_exceed_its_node() {
        let object = |json: &str| Object::from_json(json.as_bytes()).unwrap();
        let pod = object(
            r#"{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1500m","memory":"1Gi"}}}]}}"#,
        );
        for (node, expected) in [
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
            assert_eq!(
                refused.as_ref().map(|(message, reason)| (message.as_str(), *reason)),
                expected,
                "{node}"
            );
        }
    }
}
