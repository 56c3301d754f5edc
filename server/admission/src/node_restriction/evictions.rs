//! Evictions: a kubelet evicts what runs on its node.

use portico_registry::{Operation, Result};

use super::question::Question;

/// Checks an eviction (upstream's `admitPodEviction`).
pub(super) async fn check(question: &Question<'_>, node: &str) -> Result<()> {
    if !question.is(Operation::Create) {
        let operation = question.attributes.operation_name();
        return Err(question.forbidden(&format!("unexpected operation {operation}")));
    }
    let name = question.name();
    if name.is_empty() {
        return Err(question.forbidden("could not determine pod from request data"));
    }
    let pod = question.core_object("pod", question.attributes.namespace, name).await?;
    match pod.str_at("spec.nodeName") == node {
        true => Ok(()),
        false => {
            Err(question
                .forbidden(&format!("node {node} can only evict pods with spec.nodeName set to itself")))
        }
    }
}
