//! Objects that are named after a node, or name it: leases, CSINodes, ResourceSlices.

use portico_machinery::Object;
use portico_registry::{Operation, Result};

use super::question::Question;

const LEASES: &str = "kube-node-lease";

/// Checks a write of a lease (upstream's `admitLease`).
pub(super) fn check_lease(question: &Question<'_>, node: &str) -> Result<()> {
    if question.attributes.namespace != LEASES {
        let why = format!("can only access leases in the {LEASES:?} system namespace");
        return Err(question.forbidden(&why));
    }
    check_name(question, node, "can only access node lease with the same name as the requesting node")
}

/// Checks a write of a CSINode (upstream's `admitCSINode`).
pub(super) fn check_csi_node(question: &Question<'_>, node: &str) -> Result<()> {
    check_name(question, node, "can only access CSINode with the same name as the requesting node")
}

fn check_name(question: &Question<'_>, node: &str, why: &str) -> Result<()> {
    // What is created goes by its own name.
    let name = match question.new.filter(|_| question.is(Operation::Create)) {
        Some(new) => new.name(),
        None => question.attributes.name,
    };
    if name == node { Ok(()) } else { Err(question.forbidden(why)) }
}

/// Checks a write of a ResourceSlice (upstream's `admitResourceSlice`); an update is the Node authorizer's.
pub(super) fn check_slice(question: &Question<'_>, node: &str) -> Result<()> {
    let is_own = |slice: &Object| slice.str_at("spec.nodeName") == node;
    let (own, verb) = match question.attributes.operation {
        Operation::Create => (question.new.is_some_and(is_own), "create"),
        Operation::Delete => (question.old.is_some_and(is_own), "delete"),
        _ => return Ok(()),
    };
    if own {
        return Ok(());
    }
    let why = format!("can only {verb} ResourceSlice with the same NodeName as the requesting node");
    Err(question.forbidden(&why))
}
