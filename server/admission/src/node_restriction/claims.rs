//! Claims: a kubelet may write only the capacity and the conditions of a volume that it resizes.

use portico_machinery::Object;
use portico_registry::{Operation, Result};

use super::node_request::NodeRequest;

/// Fields that a kubelet may change.
const MUTABLE_FIELDS: [&[&str]; 6] = [
    &["metadata", "resourceVersion"],
    &["metadata", "managedFields"],
    &["status", "capacity"],
    &["status", "conditions"],
    &["status", "allocatedResourceStatuses"],
    &["status", "allocatedResources"],
];

/// Checks a write of a claim's status (upstream's `admitPVCStatus`). Upstream's message ends with a diff of its internal
/// structures; this message names the fields instead.
pub(super) fn check_status(node_request: &NodeRequest<'_>, node: &str) -> Result<()> {
    let (Operation::Update, Some(new), Some(old)) =
        (node_request.attributes.operation, node_request.new, node_request.old)
    else {
        return Err(node_request.unexpected());
    };
    let changed = forbidden_changes(new, old);
    if changed.is_empty() {
        return Ok(());
    }
    Err(node_request.forbidden(&format!(
        "node {node:?} is not allowed to update fields other than status.quantity and status.conditions: {}",
        changed.join(", ")
    )))
}

/// Returns the fields that differ and must not.
fn forbidden_changes(new: &Object, old: &Object) -> Vec<String> {
    let (new, old) = (without_mutable_fields(new), without_mutable_fields(old));
    let mut fields = Vec::new();
    for part in ["metadata", "spec", "status"] {
        let (new, old) = (new.at(&[part]), old.at(&[part]));
        let mut names: Vec<&str> = new.entries().chain(old.entries()).map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        let differs = |name: &&str| {
            let (new, old) = (new.field(name), old.field(name));
            let both_empty = new.is_empty() && old.is_empty() && new.str() == old.str();
            !(both_empty || new.same_as(&old))
        };
        fields.extend(names.into_iter().filter(differs).map(|name| format!("{part}.{name}")));
    }
    fields
}

fn without_mutable_fields(object: &Object) -> Object {
    let mut object = object.clone();
    for path in MUTABLE_FIELDS {
        object.remove(path);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_other_than_capacity_and_conditions_are_named() {
        let old = br#"{"metadata":{"resourceVersion":"1","labels":{}},"spec":{"volumeName":"v"},"status":{"phase":"Bound"}}"#;
        let old = Object::from_json(old).unwrap();
        let mut new = old.clone();
        new.remove(&["metadata", "resourceVersion"]);
        new.remove(&["metadata", "labels"]);
        new.set(&["status", "capacity", "storage"], "2Gi");
        new.set(&["status", "conditions"], [""]);
        assert!(forbidden_changes(&new, &old).is_empty());
        new.set(&["metadata", "labels", "a"], "b");
        new.set(&["status", "phase"], "Lost");
        new.remove(&["spec", "volumeName"]);
        assert_eq!(forbidden_changes(&new, &old), ["metadata.labels", "spec.volumeName", "status.phase"]);
    }
}
