//! What becomes of the instances of a definition, pure.

use portico_machinery::{GroupResource, Object};
use portico_registry::condition::{self, Condition};
use portico_registry::definition;

use portico_registry::definition::{ESTABLISHED, FINALIZER, TERMINATING};

/// Reason and message while instances are going.
pub(super) const IN_PROGRESS: (&str, &str) =
    ("InstanceDeletionInProgress", "CustomResource deletion is in progress");
/// Something could not be listed or deleted.
pub(super) const FAILED: &str = "InstanceDeletionFailed";
/// Something does not go.
pub(super) const CHECK: &str = "InstanceDeletionCheck";

/// Built-in resources whose objects lie where those of a definition of the same name would.
const OVERLAPPING: [(&str, &str); 2] =
    [("apiregistration.k8s.io", "apiservices"), (definition::GROUP, definition::RESOURCE)];

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Nothing; the definition goes with these words.
    Leave(Condition),
    /// All instances of this resource are to go.
    Empty(GroupResource),
}

/// Nothing for definitions that stay, or that do not wait for this controller.
pub(super) fn plan(definition: &Object) -> Option<Plan> {
    if definition.deletion_timestamp().is_none() || !definition.finalizers().contains(&FINALIZER) {
        return None;
    }
    let group = definition.at(&["spec", "group"]).str();
    let overlaps = OVERLAPPING.contains(&(group, definition.at(&["spec", "names", "plural"]).str()));
    let leave = |reason, message| Plan::Leave(terminating("False", reason, message));
    Some(if overlaps {
        leave("OverlappingBuiltInResource", "instances overlap with built-in resources in storage")
    } else if condition::is_true(definition, ESTABLISHED) {
        let plural = definition.at(&["status", "acceptedNames", "plural"]).str();
        Plan::Empty(GroupResource::new(group, plural))
    } else {
        leave("NeverEstablished", "resource was never established")
    })
}

/// The condition.
pub(super) fn terminating(status: &str, reason: &str, message: impl Into<String>) -> Condition {
    Condition::new(TERMINATING, status, reason, message)
}

/// All are gone.
pub(super) fn completed() -> Condition {
    terminating("False", "InstanceDeletionCompleted", "removed all instances")
}

/// Whether it reports a failure: trying again does not replace that.
pub(super) fn is_failure(reported: &Condition) -> bool {
    [FAILED, CHECK].contains(&reported.reason.as_str())
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
    fn instances_go_with_what_was_established_but_never_those_of_built_in_kinds() {
        let of = |group, plural, established, finalizer, deleted| {
            plan(&definition(group, plural, established, finalizer, deleted)).map(|plan| match plan {
                Plan::Leave(reported) => format!("{} {}", reported.status, reported.reason),
                Plan::Empty(resource) => resource.to_string(),
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
