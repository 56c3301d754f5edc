//! Selection of writes that may change the usage (upstream's `Evaluator.Handles`).

use portico_machinery::{GroupResource, Object};
use portico_quota::{Evaluator, ScopeRequirement};
use portico_registry::{ObjectPart, Write};

/// True if a write may change the usage.
pub(super) fn handles(resource: &GroupResource, evaluator: &dyn Evaluator, write: &Write<'_>) -> bool {
    let part = match write.part {
        ObjectPart::Main => "",
        ObjectPart::Subresource(part) => part,
    };
    match (resource.group.as_str(), resource.resource.as_str(), part) {
        ("" | "events.k8s.io", "events", _) => false,
        ("", "pods", "") => write.old.is_none_or(|old| {
            let terminating = |pod: &Object| evaluator.in_scope(&terminating(), pod);
            terminating(old) != terminating(write.new)
        }),
        ("", "pods", "resize") => write.old.is_some(),
        // Volumes can be larger than requested, and are counted with their actual size.
        ("", "persistentvolumeclaims", "" | "status") => true,
        ("", "services", "") | ("resource.k8s.io", "resourceclaims", "") => true,
        (_, _, "") => evaluator.is_plain_count() && write.old.is_none(),
        _ => false,
    }
}

fn terminating() -> ScopeRequirement<'static> {
    ScopeRequirement { scope: "Terminating", operator: "Exists", values: Vec::new() }
}
