//! Decides whether the instances of a definition are deleted. Pure.

use portico_machinery::{GroupResource, Object};
use portico_registry::condition::{self, Condition};
use portico_registry::definition;

use portico_registry::definition::{ESTABLISHED, FINALIZER, TERMINATING};

/// Reason and message while instances are being deleted.
pub(super) const IN_PROGRESS: (&str, &str) =
    ("InstanceDeletionInProgress", "CustomResource deletion is in progress");
/// Reason if instances could not be listed or deleted.
pub(super) const FAILED: &str = "InstanceDeletionFailed";
/// Reason if instances remain after the timeout.
pub(super) const CHECK_FAILED: &str = "InstanceDeletionCheck";

/// Built-in resources whose objects have the same storage keys as those of a definition with the same name.
const OVERLAPPING: [(&str, &str); 2] =
    [("apiregistration.k8s.io", "apiservices"), (definition::GROUP, definition::RESOURCE)];

/// Action for a definition that is being deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FinalizePlan {
    /// Finalize the definition with this condition, without deleting instances.
    KeepInstances(Condition),
    /// Delete all instances of this resource.
    DeleteInstances(GroupResource),
}

/// Returns the plan; `None` for definitions that are not being deleted or lack the finalizer.
pub(super) fn plan(definition: &Object) -> Option<FinalizePlan> {
    if definition.deletion_timestamp().is_none() || !definition.finalizers().contains(&FINALIZER) {
        return None;
    }
    let group = definition.at(&["spec", "group"]).str();
    let overlaps = OVERLAPPING.contains(&(group, definition.at(&["spec", "names", "plural"]).str()));
    let leave =
        |reason, message| FinalizePlan::KeepInstances(terminating_condition("False", reason, message));
    Some(if overlaps {
        leave("OverlappingBuiltInResource", "instances overlap with built-in resources in storage")
    } else if condition::is_true(definition, ESTABLISHED) {
        let plural = definition.at(&["status", "acceptedNames", "plural"]).str();
        FinalizePlan::DeleteInstances(GroupResource::new(group, plural))
    } else {
        leave("NeverEstablished", "resource was never established")
    })
}

/// Creates a Terminating condition.
pub(super) fn terminating_condition(status: &str, reason: &str, message: impl Into<String>) -> Condition {
    Condition::new(TERMINATING, status, reason, message)
}

/// Returns the condition after all instances are gone.
pub(super) fn completed_condition() -> Condition {
    terminating_condition("False", "InstanceDeletionCompleted", "removed all instances")
}

/// Returns true if the condition reports a failure: a new attempt does not overwrite that.
pub(super) fn is_failure(reported: &Condition) -> bool {
    [FAILED, CHECK_FAILED].contains(&reported.reason.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(group: &str, plural: &str, established: &str, finalizer: &str, deleted: bool) -> Object {
        let mut object = Object::default();
        if deleted {
            object.set(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z");
        }
        object.set(&["metadata", "finalizers"], [finalizer]);
        object.set(&["spec", "group"], group);
        object.set(&["spec", "names", "plural"], plural);
        object.set(&["status", "acceptedNames", "plural"], plural);
        object.set(&["status", "conditions"], [Condition::new(ESTABLISHED, established, "R", "m")]);
        object
    }

    #[test]
    fn instances_of_established_definitions_are_deleted_but_never_those_of_built_in_kinds() {
        let of = |group, plural, established, finalizer, deleted| {
            plan(&definition(group, plural, established, finalizer, deleted)).map(|plan| match plan {
                FinalizePlan::KeepInstances(reported) => format!("{} {}", reported.status, reported.reason),
                FinalizePlan::DeleteInstances(resource) => resource.to_string(),
            })
        };
        let rows = [
            (of("g.io", "a", "True", FINALIZER, true), Some("a.g.io")),
            (of("g.io", "a", "False", FINALIZER, true), Some("False NeverEstablished")),
            (of("g.io", "a", "True", FINALIZER, false), None),
            (of("g.io", "a", "True", "example.com/mine", true), None),
            (
                of("apiregistration.k8s.io", "apiservices", "True", FINALIZER, true),
                Some("False OverlappingBuiltInResource"),
            ),
            (
                of("apiextensions.k8s.io", "customresourcedefinitions", "False", FINALIZER, true),
                Some("False OverlappingBuiltInResource"),
            ),
            (
                of("apiextensions.k8s.io", "others", "True", FINALIZER, true),
                Some("others.apiextensions.k8s.io"),
            ),
        ];
        for (planned, want) in rows {
            assert_eq!(planned.as_deref(), want);
        }
    }
}
