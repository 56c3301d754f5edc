//! Maintains the built-in objects of flow control (hook `priority-and-fairness-config-producer`).
//!
//! Mandatory objects are always reset; suggested ones belong to the user once their annotation is `false`. Objects with the
//! annotation that are no longer built in are deleted.

use std::time::Duration;

use futures::future::join_all;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::{
    Context, CreateOptions, DeleteOptions, ListOptions, ObjectPart, Registry, UpdateOptions,
};
use portico_resources::{BuiltinFlowObject, builtin_flow_objects};

use crate::periodic::at_intervals;
use crate::write_result::ignore_reasons;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// Annotation that is `true` if the server maintains the spec.
const ANNOTATION: &str = "apf.kubernetes.io/autoupdate-spec";
/// Upstream's field manager.
const MANAGER: &str = "api-priority-and-fairness-config-producer-v1";
/// Interval between two reconciliations.
const PERIOD: Duration = Duration::from_secs(60);

/// Action for a built-in object.
#[derive(Clone, Debug, PartialEq)]
pub enum FlowConfigStep {
    /// The object is up to date or belongs to the user.
    Skip,
    /// Create the missing object.
    Create(Object),
    /// Update the object to this state.
    Update(Object),
}

/// Decides about one of the built-in objects. Pure.
#[must_use]
pub fn step(builtin: &BuiltinFlowObject, current: Option<&Object>) -> FlowConfigStep {
    let Some(current) = current else { return FlowConfigStep::Create(builtin.object.clone()) };
    let annotated = current.annotation(ANNOTATION).and_then(|text| text.parse::<bool>().ok());
    // A suggested object that a user changed before the annotation existed belongs to the user.
    let is_maintained = builtin.mandatory || annotated.unwrap_or(current.generation() == 1);
    let mut desired = current.clone();
    if builtin.mandatory || annotated.is_none() {
        desired.set(&["metadata", "annotations", ANNOTATION], is_maintained.to_string());
    }
    if is_maintained {
        let exempt = current.get(&["spec", "exempt"]);
        desired.copy_from(&builtin.object, &["spec"]);
        if let Some(exempt) = exempt.filter(|_| builtin.has_name("PriorityLevelConfiguration", "exempt")) {
            desired.put(&["spec", "exempt"], exempt);
        }
    }
    if desired == *current { FlowConfigStep::Skip } else { FlowConfigStep::Update(desired) }
}

/// Returns true if an object was once built in and no longer is. Pure.
#[must_use]
pub fn is_left_over(object: &Object) -> bool {
    let is_maintained = object.annotation(ANNOTATION).and_then(|text| text.parse().ok()) == Some(true);
    is_maintained
        && !builtin_flow_objects().iter().any(|builtin| builtin.has_name(object.kind(), object.name()))
}

/// Reconciles all built-in objects once.
///
/// # Errors
/// Returns the first failure.
pub async fn reconcile(registry: &Registry) -> Result<(), Box<Status>> {
    let mut present = Vec::new();
    for resource in [levels(), schemas()] {
        let listed = registry.list(&resource, "", &ListOptions::default()).await?;
        present.extend(listed.items.into_iter().map(|stored| (resource.clone(), stored)));
    }
    let find = |builtin: &BuiltinFlowObject| {
        let mut objects = present.iter().map(|(_, stored)| stored.object());
        objects.find(|object| builtin.has_name(object.kind(), object.name()))
    };
    let steps: Vec<FlowConfigStep> =
        builtin_flow_objects().iter().map(|builtin| step(builtin, find(builtin))).collect();
    // Concurrent writes share a commit.
    let results = join_all(steps.into_iter().map(|step| execute(registry, step))).await;
    results.into_iter().find_map(Result::err).map_or(Ok(()), Err)?;
    for (resource, stored) in present.iter().filter(|(_, stored)| is_left_over(stored.object())) {
        let deleted = registry
            .delete(&Context::system(MANAGER), resource, "", stored.name(), &DeleteOptions::default())
            .await;
        ignore_reasons(deleted, &[Reason::NotFound])?;
    }
    Ok(())
}

/// Reconciles at intervals until `tasks` is cancelled.
pub async fn run(registry: Registry, tasks: TaskSet) {
    let reconcile_loop = at_intervals(PERIOD, BackoffPolicy::RECONNECT, || async {
        let result = reconcile(&registry).await;
        result
            .inspect_err(|status| {
                tracing::warn!(
                    error = %status,
                    "cannot reconcile the objects of API priority and fairness, retrying"
                )
            })
            .is_ok()
    });
    tasks.token().run_until_cancelled(reconcile_loop).await;
}

async fn execute(registry: &Registry, step: FlowConfigStep) -> Result<(), Box<Status>> {
    let context = Context::system(MANAGER);
    let resource_of = |object: &Object| if object.kind() == "FlowSchema" { schemas() } else { levels() };
    match step {
        FlowConfigStep::Skip => Ok(()),
        FlowConfigStep::Create(object) => {
            let resource = resource_of(&object);
            let created = registry.create(&context, &resource, object, &CreateOptions::default()).await;
            ignore_reasons(created, &[Reason::AlreadyExists])
        }
        FlowConfigStep::Update(object) => {
            let resource = resource_of(&object);
            registry
                .update(&context, &resource, ObjectPart::Main, object, &UpdateOptions::default())
                .await
                .map(drop)
        }
    }
}

fn levels() -> GroupResource {
    GroupResource::new(GROUP, "prioritylevelconfigurations")
}

fn schemas() -> GroupResource {
    GroupResource::new(GROUP, "flowschemas")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builtin(kind: &str, name: &str) -> &'static BuiltinFlowObject {
        builtin_flow_objects().iter().find(|builtin| builtin.has_name(kind, name)).unwrap()
    }

    #[test]
    fn missing_objects_are_created_and_correct_ones_are_skipped() {
        let catch_all = builtin("FlowSchema", "catch-all");
        assert_eq!(step(catch_all, None), FlowConfigStep::Create(catch_all.object.clone()));
        assert_eq!(step(catch_all, Some(&catch_all.object)), FlowConfigStep::Skip);
    }

    #[test]
    fn the_annotation_decides_whether_a_suggested_object_is_maintained() {
        let low = builtin("PriorityLevelConfiguration", "workload-low");
        let mut edited = low.object.clone();
        edited.set(&["spec", "limited", "nominalConcurrencyShares"], 1);
        assert_eq!(step(low, Some(&edited)), FlowConfigStep::Update(low.object.clone()));
        edited.set(&["metadata", "annotations", ANNOTATION], "false");
        assert_eq!(step(low, Some(&edited)), FlowConfigStep::Skip);
        edited.remove(&["metadata", "annotations"]);
        edited.set(&["metadata", "generation"], 2);
        let FlowConfigStep::Update(updated) = step(low, Some(&edited)) else {
            panic!("an edited object must be annotated as not maintained")
        };
        assert_eq!(updated.annotation(ANNOTATION), Some("false"));
        assert_eq!(updated.at(&["spec", "limited", "nominalConcurrencyShares"]).i64(), Some(1));
    }

    #[test]
    fn a_mandatory_object_is_reset_except_for_the_shares_of_the_exempt_level() {
        let exempt = builtin("PriorityLevelConfiguration", "exempt");
        let mut edited = exempt.object.clone();
        edited.set(&["metadata", "annotations", ANNOTATION], "false");
        edited.set(&["spec", "exempt", "lendablePercent"], 50);
        let FlowConfigStep::Update(updated) = step(exempt, Some(&edited)) else {
            panic!("the annotation must be reset")
        };
        assert_eq!(updated.annotation(ANNOTATION), Some("true"));
        assert_eq!(updated.at(&["spec", "exempt", "lendablePercent"]).i64(), Some(50));
    }

    #[test]
    fn only_objects_with_the_annotation_are_deleted() {
        let mut object = builtin("FlowSchema", "probes").object.clone();
        assert!(!is_left_over(&object));
        object.set(&["metadata", "name"], "once");
        assert!(is_left_over(&object));
        object.remove(&["metadata", "annotations"]);
        assert!(!is_left_over(&object));
    }
}
