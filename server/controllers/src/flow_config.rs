//! Maintains the built-in objects of flow control (hook `priority-and-fairness-config-producer`).
//!
//! Mandatory objects are always reset; suggested ones belong to the user once their annotation is `false`. Objects with the
//! annotation that are no longer built in are deleted.

use std::time::Duration;

use futures::future::join_all;
use portico_kit::backoff::Policy;
use portico_kit::tasks::TaskSet;
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::{Context, CreateOptions, DeleteOptions, ListOptions, Part, Registry, UpdateOptions};
use portico_resources::{FlowObject, flow_objects};

use crate::outcome::unless;
use crate::rounds::at_intervals;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// Annotation that is `true` if the server maintains the spec.
const ANNOTATION: &str = "apf.kubernetes.io/autoupdate-spec";
/// Upstream's field manager.
const MANAGER: &str = "api-priority-and-fairness-config-producer-v1";
/// Interval between two reconciliations.
const PERIOD: Duration = Duration::from_secs(60);

/// Action for a built-in object.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The object is up to date or belongs to the user.
    Leave,
    /// Create the missing object.
    Create(Object),
    /// Update the object to this state.
    Update(Object),
}

/// Decides about one of the built-in objects. Pure.
#[must_use]
pub fn step(builtin: &FlowObject, current: Option<&Object>) -> Step {
    let Some(current) = current else { return Step::Create(builtin.object.clone()) };
    let annotated = current.annotation(ANNOTATION).and_then(|text| text.parse::<bool>().ok());
    // A suggested object that a user changed before the annotation existed belongs to the user.
    let keeps = builtin.mandatory || annotated.unwrap_or(current.generation() == 1);
    let mut wanted = current.clone();
    if builtin.mandatory || annotated.is_none() {
        wanted.set(&["metadata", "annotations", ANNOTATION], keeps.to_string());
    }
    if keeps {
        let exempt = current.get(&["spec", "exempt"]);
        wanted.copy_from(&builtin.object, &["spec"]);
        if let Some(exempt) = exempt.filter(|_| builtin.is("PriorityLevelConfiguration", "exempt")) {
            wanted.put(&["spec", "exempt"], exempt);
        }
    }
    if wanted == *current { Step::Leave } else { Step::Update(wanted) }
}

/// Returns true if an object was once built in and no longer is. Pure.
#[must_use]
pub fn is_left_over(object: &Object) -> bool {
    let ours = object.annotation(ANNOTATION).and_then(|text| text.parse().ok()) == Some(true);
    ours && !flow_objects().iter().any(|builtin| builtin.is(object.kind(), object.name()))
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
    let find = |builtin: &FlowObject| {
        let mut objects = present.iter().map(|(_, stored)| stored.object());
        objects.find(|object| builtin.is(object.kind(), object.name()))
    };
    let steps: Vec<Step> = flow_objects().iter().map(|builtin| step(builtin, find(builtin))).collect();
    // Concurrent writes share a commit.
    let done = join_all(steps.into_iter().map(|step| carry_out(registry, step))).await;
    done.into_iter().find_map(Result::err).map_or(Ok(()), Err)?;
    for (resource, stored) in present.iter().filter(|(_, stored)| is_left_over(stored.object())) {
        let deleted = registry
            .delete(&Context::system(MANAGER), resource, "", stored.name(), &DeleteOptions::default())
            .await;
        unless(deleted, &[Reason::NotFound])?;
    }
    Ok(())
}

/// Reconciles at intervals until `tasks` is cancelled.
pub async fn run(registry: Registry, tasks: TaskSet) {
    let keep = at_intervals(PERIOD, Policy::RECONNECT, || async {
        let done = reconcile(&registry).await;
        done.inspect_err(|status| {
            tracing::warn!(
                error = %status,
                "cannot reconcile the objects of API priority and fairness, retrying"
            )
        })
        .is_ok()
    });
    tasks.token().run_until_cancelled(keep).await;
}

async fn carry_out(registry: &Registry, step: Step) -> Result<(), Box<Status>> {
    let context = Context::system(MANAGER);
    let resource_of = |object: &Object| if object.kind() == "FlowSchema" { schemas() } else { levels() };
    match step {
        Step::Leave => Ok(()),
        Step::Create(object) => {
            let resource = resource_of(&object);
            let created = registry.create(&context, &resource, object, &CreateOptions::default()).await;
            unless(created, &[Reason::AlreadyExists])
        }
        Step::Update(object) => {
            let resource = resource_of(&object);
            registry
                .update(&context, &resource, Part::Main, object, &UpdateOptions::default())
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

    fn builtin(kind: &str, name: &str) -> &'static FlowObject {
        flow_objects().iter().find(|builtin| builtin.is(kind, name)).unwrap()
    }

    #[test]
    fn what_is_missing_is_made_and_what_is_right_is_left() {
        let catch_all = builtin("FlowSchema", "catch-all");
        assert_eq!(step(catch_all, None), Step::Create(catch_all.object.clone()));
        assert_eq!(step(catch_all, Some(&catch_all.object)), Step::Leave);
    }

    #[test]
    fn the_annotation_decides_whose_a_suggested_object_is() {
        let low = builtin("PriorityLevelConfiguration", "workload-low");
        let mut edited = low.object.clone();
        edited.set(&["spec", "limited", "nominalConcurrencyShares"], 1);
        assert_eq!(step(low, Some(&edited)), Step::Update(low.object.clone()));
        edited.set(&["metadata", "annotations", ANNOTATION], "false");
        assert_eq!(step(low, Some(&edited)), Step::Leave);
        edited.remove(&["metadata", "annotations"]);
        edited.set(&["metadata", "generation"], 2);
        let Step::Update(theirs) = step(low, Some(&edited)) else { panic!("it is marked as theirs") };
        assert_eq!(theirs.annotation(ANNOTATION), Some("false"));
        assert_eq!(theirs.at(&["spec", "limited", "nominalConcurrencyShares"]).i64(), Some(1));
    }

    #[test]
    fn a_mandatory_object_is_put_right_but_for_the_shares_of_the_exempt() {
        let exempt = builtin("PriorityLevelConfiguration", "exempt");
        let mut edited = exempt.object.clone();
        edited.set(&["metadata", "annotations", ANNOTATION], "false");
        edited.set(&["spec", "exempt", "lendablePercent"], 50);
        let Step::Update(wanted) = step(exempt, Some(&edited)) else { panic!("the annotation is put right") };
        assert_eq!(wanted.annotation(ANNOTATION), Some("true"));
        assert_eq!(wanted.at(&["spec", "exempt", "lendablePercent"]).i64(), Some(50));
    }

    #[test]
    fn only_our_own_left_overs_go() {
        let mut object = builtin("FlowSchema", "probes").object.clone();
        assert!(!is_left_over(&object));
        object.set(&["metadata", "name"], "once");
        assert!(is_left_over(&object));
        object.remove(&["metadata", "annotations"]);
        assert!(!is_left_over(&object));
    }
}
