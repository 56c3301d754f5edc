//! Evictions: a kubelet evicts what runs on its node.

use portico_registry::{Operation, Result};

use super::node_request::NodeRequest;

/// Checks an eviction (upstream's `admitPodEviction`).
pub(super) async fn check(request: &NodeRequest<'_>, node: &str) -> Result<()> {
    if !request.is(Operation::Create) {
        let operation = request.attributes.operation_name();
        return Err(request.forbidden(&format!("unexpected operation {operation}")));
    }
    let name = request.name();
    if name.is_empty() {
        return Err(request.forbidden("could not determine pod from request data"));
    }
    let pod = request.core_object("pod", request.attributes.namespace, name).await?;
    match pod.str_at("spec.nodeName") == node {
        true => Ok(()),
        false => {
            Err(request
                .forbidden(&format!("node {node} can only evict pods with spec.nodeName set to itself")))
        }
    }
}
