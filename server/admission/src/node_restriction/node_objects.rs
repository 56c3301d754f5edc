//! Objects that are named after a node or name a node: Leases, CSINodes, ResourceSlices.

use portico_machinery::Object;
use portico_registry::{Operation, Result};

use super::node_request::NodeRequest;

const LEASES: &str = "kube-node-lease";

/// Checks a write of a lease (upstream's `admitLease`).
pub(super) fn check_lease(node_request: &NodeRequest<'_>, node: &str) -> Result<()> {
    if node_request.attributes.namespace != LEASES {
        let message = format!("can only access leases in the {LEASES:?} system namespace");
        return Err(node_request.forbidden(&message));
    }
    check_name(node_request, node, "can only access node lease with the same name as the requesting node")
}

/// Checks a write of a CSINode (upstream's `admitCSINode`).
pub(super) fn check_csi_node(node_request: &NodeRequest<'_>, node: &str) -> Result<()> {
    check_name(node_request, node, "can only access CSINode with the same name as the requesting node")
}

fn check_name(node_request: &NodeRequest<'_>, node: &str, message: &str) -> Result<()> {
    // A created object has the name in its metadata.
    let name = match node_request.new.filter(|_| node_request.has_operation(Operation::Create)) {
        Some(new) => new.name(),
        None => node_request.attributes.name,
    };
    if name == node { Ok(()) } else { Err(node_request.forbidden(message)) }
}

/// Checks a write of a ResourceSlice (upstream's `admitResourceSlice`). The Node authorizer decides on updates.
pub(super) fn check_slice(node_request: &NodeRequest<'_>, node: &str) -> Result<()> {
    let is_own = |slice: &Object| slice.str_at("spec.nodeName") == node;
    let (own_object, verb) = match node_request.attributes.operation {
        Operation::Create => (node_request.new.is_some_and(is_own), "create"),
        Operation::Delete => (node_request.old.is_some_and(is_own), "delete"),
        _ => return Ok(()),
    };
    if own_object {
        return Ok(());
    }
    let message = format!("can only {verb} ResourceSlice with the same NodeName as the requesting node");
    Err(node_request.forbidden(&message))
}
