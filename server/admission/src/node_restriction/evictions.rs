//! Evictions: a kubelet may evict pods that run on its node.

use portico_registry::{Operation, Result};

use super::node_request::NodeRequest;

/// Checks an eviction (upstream's `admitPodEviction`).
pub(super) async fn check(node_request: &NodeRequest<'_>, node: &str) -> Result<()> {
    if !node_request.has_operation(Operation::Create) {
        let operation = node_request.attributes.operation_name();
        return Err(node_request.forbidden(&format!("unexpected operation {operation}")));
    }
    let name = node_request.name();
    if name.is_empty() {
        return Err(node_request.forbidden("could not determine pod from request data"));
    }
    let pod = node_request.core_object("pod", node_request.attributes.namespace, name).await?;
    match pod.str_at("spec.nodeName") == node {
        true => Ok(()),
        false => Err(node_request
            .forbidden(&format!("node {node} can only evict pods with spec.nodeName set to itself"))),
    }
}
