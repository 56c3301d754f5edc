//! Type-checks the expressions of ValidatingAdmissionPolicies and writes warnings into their status
//! (`validatingadmissionpolicy-status-controller`).
//!
//! Each generation of a policy is checked once, against the kinds served at that time, as upstream.

mod kinds;

use futures::future::BoxFuture;
use portico_kit::backoff::BackoffPolicy as Backoff;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::{Cursor, GroupResource, GroupVersion, GroupVersionKind, Object, Reason, Status};
use portico_policy::TypeChecker;
use portico_registry::{
    CreateOptions, ListOptions, LogEntry, ObjectPart, ObjectPath, ObjectRef, Objects, PatchOptions, Registry,
};
use serde::Serialize;

use crate::account::service_account_context;
use crate::log::Listener;
use crate::write_result::ignore_reasons;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "validatingadmissionpolicy-status-controller";

const GROUP: &str = "admissionregistration.k8s.io";
const KIND: &str = "ValidatingAdmissionPolicy";
const USER: &str = "validatingadmissionpolicy-status-controller";
/// Upstream's field manager, which is also the name of the queue.
const MANAGER: &str = "validatingadmissionpolicy-status";
/// Number of policies checked concurrently (upstream's `ConcurrentPolicySyncs`).
const WORKERS: usize = 5;

/// Warning about one expression, in the form of the apply configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ExpressionWarning {
    field_ref: String,
    warning: String,
}

/// Returns true if this generation of a policy has not been checked.
fn is_due(policy: &Object) -> bool {
    let generation = policy.at(&["metadata", "generation"]).i64().unwrap_or(0);
    generation > policy.at(&["status", "observedGeneration"]).i64().unwrap_or(0)
}

/// Returns the expressions of a policy to check, each with its field path, in upstream's order.
fn expressions<'p>(policy: &'p Object) -> Vec<(String, &'p str)> {
    let validations = policy.at(&["spec", "validations"]);
    let expressions_of = |(index, validation): (usize, Cursor<'p>)| {
        ["expression", "messageExpression"]
            .into_iter()
            .map(move |field| (format!("spec.validations[{index}].{field}"), validation.field(field).str()))
            .filter(|(path, text)| !text.is_empty() || path.ends_with(".expression"))
            .collect::<Vec<_>>()
    };
    validations.items().enumerate().flat_map(expressions_of).collect()
}

/// Returns the apply configuration of the status with these warnings.
fn configuration(policy: &Object, warnings: &[ExpressionWarning]) -> Object {
    let mut config = Object::new(&GroupVersion::new(GROUP, "v1").kind(KIND));
    config.set(&["metadata", "name"], policy.name());
    config.set(&["metadata", "uid"], policy.uid());
    let generation = policy.at(&["metadata", "generation"]).i64().unwrap_or(0);
    config.set(&["status", "observedGeneration"], generation);
    config.put(&["status", "typeChecking"], Object::default().into_node());
    if !warnings.is_empty() {
        config.set(&["status", "typeChecking", "expressionWarnings"], warnings);
    }
    config
}

/// Returns the types against which a policy is checked. Kinds that are no longer served are omitted.
fn type_check(objects: &Objects, policy: &Object) -> TypeChecker {
    let found =
        kinds::policy_kinds(policy, |group, version, resource| objects.kinds_for(group, version, resource));
    let typed = |kind: GroupVersionKind| {
        let ty = objects.by_kind(&kind)?.info.schema.expression_type(&format!("{}1", kind.kind))?;
        Some((kind, ty))
    };
    let param_kind = policy.at(&["spec", "paramKind"]);
    let params = param_kind.is_present().then(|| {
        let version = param_kind.field("apiVersion").str().parse::<GroupVersion>().ok()?;
        let kind = version.kind(param_kind.field("kind").str());
        objects.by_kind(&kind)?.info.schema.expression_type(&format!("{}2", kind.kind))
    });
    let variables = policy.at(&["spec", "variables"]);
    let variables: Vec<(&str, &str)> = variables
        .items()
        .map(|variable| (variable.field("name").str(), variable.field("expression").str()))
        .collect();
    TypeChecker::new(found.into_iter().filter_map(typed).collect(), params, &variables)
}

/// Controller of the status of all policies. Cheap to clone.
#[derive(Clone)]
pub struct PolicyStatus {
    queue: WorkQueue<String>,
}

impl PolicyStatus {
    /// Creates the controller.
    #[must_use]
    pub fn new(metrics: &QueueMetrics) -> Self {
        Self { queue: WorkQueue::with_metrics(MANAGER, Backoff::CONTROLLER, metrics) }
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let registry = registry.clone();
        run_workers(tasks, "policy-status", WORKERS, self.queue.clone(), move |name| {
            let registry = registry.clone();
            async move { check(&registry, &name).await.map(|()| ReconcileOutcome::Done) }
        });
    }
}

impl Listener for PolicyStatus {
    fn resync<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let all = registry.list(&policies(), "", &ListOptions::default()).await?.items;
            for policy in &all {
                self.queue.add(policy.name().to_owned());
            }
            Ok(())
        })
    }

    fn on_event(&self, change: &LogEntry) {
        if *change.resource() == policies() && !change.is_deleted() {
            self.queue.add(change.name().to_owned());
        }
    }
}

/// Checks a policy unless its generation has been checked, and applies the warnings.
async fn check(registry: &Registry, name: &str) -> Result<(), Box<Status>> {
    let object_ref = ObjectRef { resource: policies(), namespace: String::new(), name: name.to_owned() };
    let Some(policy) = registry.get_stored(&object_ref).await? else { return Ok(()) };
    let policy = policy.object();
    if !is_due(policy) {
        return Ok(());
    }
    let types = type_check(registry.objects(), policy);
    let mut warnings = Vec::new();
    for (field_ref, expression) in expressions(policy) {
        warnings.extend(types.warning(expression).map(|warning| ExpressionWarning { field_ref, warning }));
        // A policy may contain thousands of expressions: lets other tasks run.
        tokio::task::yield_now().await;
    }
    let config = configuration(policy, &warnings);
    let write = CreateOptions { field_manager: MANAGER.to_owned(), ..CreateOptions::default() };
    let options = PatchOptions { write, force: Some(true) };
    let path = ObjectPath { part: ObjectPart::Subresource("status"), namespace: "", name };
    let context = service_account_context(USER);
    let applied = registry.apply(&context, &policies(), path, &config.to_json(), &options).await;
    // Deleted, or deleted and created again: a later event enqueues the policy.
    ignore_reasons(applied, &[Reason::NotFound, Reason::Conflict])
}

fn policies() -> GroupResource {
    GroupResource::new(GROUP, "validatingadmissionpolicies")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(json: &str) -> Object {
        Object::from_json(json.as_bytes()).unwrap()
    }

    #[test]
    fn a_generation_is_checked_once() {
        let table = [
            (r#"{"metadata": {"generation": 1}}"#, true),
            (r#"{"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}"#, true),
            (r#"{"metadata": {"generation": 2}, "status": {"observedGeneration": 2}}"#, false),
            (r#"{"metadata": {}}"#, false),
        ];
        for (json, due) in table {
            assert_eq!(is_due(&policy(json)), due, "{json}");
        }
    }

    #[test]
    fn validations_and_their_messages_are_checked() {
        let policy = policy(
            r#"{"spec": {"validations": [{"expression": "a"}, {"expression": "b", "messageExpression": "c"}],
                "auditAnnotations": [{"key": "k", "valueExpression": "d"}]}}"#,
        );
        let expected = [
            ("spec.validations[0].expression", "a"),
            ("spec.validations[1].expression", "b"),
            ("spec.validations[1].messageExpression", "c"),
        ];
        assert_eq!(expressions(&policy), expected.map(|(path, text)| (path.to_owned(), text)));
    }

    #[test]
    fn a_status_reports_the_observed_generation_and_warnings() {
        let policy = policy(r#"{"metadata": {"name": "p", "uid": "u", "generation": 3}}"#);
        let without_warnings = String::from_utf8(configuration(&policy, &[]).to_json()).unwrap();
        assert!(
            without_warnings.ends_with(r#""status":{"observedGeneration":3,"typeChecking":{}}}"#),
            "{without_warnings}"
        );
        let warning = ExpressionWarning { field_ref: "f".to_owned(), warning: "w".to_owned() };
        let with_warnings = configuration(&policy, &[warning]);
        assert_eq!(with_warnings.at(&["status", "typeChecking", "expressionWarnings"]).items().count(), 1);
    }
}
