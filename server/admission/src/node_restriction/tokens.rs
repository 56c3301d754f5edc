//! Tokens: a kubelet may request tokens of service accounts for pods that run on its node.

use portico_registry::{Operation, Result};

use super::audiences;
use super::node_request::NodeRequest;

/// Checks a token request (upstream's `admitServiceAccount`).
pub(super) async fn check(
    node_request: &NodeRequest<'_>,
    node: &str,
    restricts_audiences: bool,
) -> Result<()> {
    let Some(request) = node_request.new.filter(|_| node_request.has_operation(Operation::Create)) else {
        return Ok(());
    };
    let bound = request.at(&["spec", "boundObjectRef"]);
    let (name, uid) = (bound.field("name").str(), bound.field("uid").str());
    if bound.field("apiVersion").str() != "v1" || bound.field("kind").str() != "Pod" || name.is_empty() {
        return Err(node_request.forbidden("node requested token not bound to a pod"));
    }
    if uid.is_empty() {
        return Err(node_request.forbidden("node requested token with a pod binding without a uid"));
    }
    let pod = node_request.core_object("pod", node_request.attributes.namespace, name).await?;
    if uid != pod.uid() {
        return Err(node_request.forbidden(&format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been \
             deleted and then recreated"
        )));
    }
    if pod.str_at("spec.nodeName") != node {
        return Err(
            node_request.forbidden("node requested token bound to a pod scheduled on a different node")
        );
    }
    if restricts_audiences {
        audiences::check(node_request, &pod, request)
            .await
            .map_err(|error| node_request.forbidden(&error))?;
    }
    Ok(())
}
