//! What is wrong with the expressions of ValidatingAdmissionPolicies for the kinds that they are about
//! (`validatingadmissionpolicy-status-controller`): warnings in their status.
//!
//! A policy is checked once for each of its generations, against what is served at that time, as upstream does it.

mod kinds;

use futures::future::BoxFuture;
use portico_kit::backoff::Policy as Backoff;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, Reconciled, WorkQueue, run_workers};
use portico_machinery::{Cursor, GroupResource, GroupVersion, GroupVersionKind, Object, Reason, Status};
use portico_policy::TypeCheck;
use portico_registry::{
    CreateOptions, ListOptions, Logged, ObjectRef, Objects, Part, PatchOptions, Place, Registry,
};
use serde::Serialize;

use crate::account::account;
use crate::log::Listener;
use crate::outcome::unless;

/// Kube-controller-manager's name for it.
pub const NAME: &str = "validatingadmissionpolicy-status-controller";

const GROUP: &str = "admissionregistration.k8s.io";
const KIND: &str = "ValidatingAdmissionPolicy";
const USER: &str = "validatingadmissionpolicy-status-controller";
/// Upstream's field manager, and its name for the queue.
const MANAGER: &str = "validatingadmissionpolicy-status";
/// How many policies are checked at a time (upstream's `ConcurrentPolicySyncs`).
const WORKERS: usize = 5;

/// What is wrong with one expression, as it is applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ExpressionWarning {
    field_ref: String,
    warning: String,
}

/// Whether this generation of a policy was not checked yet.
fn is_due(policy: &Object) -> bool {
    let generation = policy.at(&["metadata", "generation"]).i64().unwrap_or(0);
    generation > policy.at(&["status", "observedGeneration"]).i64().unwrap_or(0)
}

/// The expressions of a policy that are checked, each with its place, in upstream's order.
fn expressions<'p>(policy: &'p Object) -> Vec<(String, &'p str)> {
    let validations = policy.at(&["spec", "validations"]);
    let of_one = |(index, at): (usize, Cursor<'p>)| {
        ["expression", "messageExpression"]
            .into_iter()
            .map(move |field| (format!("spec.validations[{index}].{field}"), at.field(field).str()))
            .filter(|(place, text)| !text.is_empty() || place.ends_with(".expression"))
            .collect::<Vec<_>>()
    };
    validations.items().enumerate().flat_map(of_one).collect()
}

/// The status that reports what is wrong with a policy.
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

/// The types against which a policy is checked. What is not served any more is left out.
fn type_check(objects: &Objects, policy: &Object) -> TypeCheck {
    let found =
        kinds::of_policy(policy, |group, version, resource| objects.kinds_for(group, version, resource));
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
    let variables: Vec<(&str, &str)> =
        variables.items().map(|at| (at.field("name").str(), at.field("expression").str())).collect();
    TypeCheck::new(found.into_iter().filter_map(typed).collect(), params, &variables)
}

/// Keeps the status of all policies. Cheap to clone.
#[derive(Clone)]
pub struct PolicyStatus {
    queue: WorkQueue<String>,
}

impl PolicyStatus {
    /// Knows nothing yet.
    #[must_use]
    pub fn new(metrics: &QueueMetrics) -> Self {
        Self { queue: WorkQueue::with_metrics(MANAGER, Backoff::CONTROLLER, metrics) }
    }

    /// Starts what works, until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let registry = registry.clone();
        run_workers(tasks, "policy-status", WORKERS, self.queue.clone(), move |name| {
            let registry = registry.clone();
            async move { check(&registry, &name).await.map(|()| Reconciled::Done) }
        });
    }
}

impl Listener for PolicyStatus {
    fn begin<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let all = registry.list(&policies(), "", &ListOptions::default()).await?.items;
            for policy in &all {
                self.queue.add(policy.name().to_owned());
            }
            Ok(())
        })
    }

    fn on_event(&self, change: &Logged) {
        if *change.resource() == policies() && !change.is_gone() {
            self.queue.add(change.name().to_owned());
        }
    }
}

/// Checks a policy unless it was, and applies what comes of it.
async fn check(registry: &Registry, name: &str) -> Result<(), Box<Status>> {
    let at = ObjectRef { resource: policies(), namespace: String::new(), name: name.to_owned() };
    let Some(policy) = registry.get_stored(&at).await? else { return Ok(()) };
    let policy = policy.object();
    if !is_due(policy) {
        return Ok(());
    }
    let types = type_check(registry.objects(), policy);
    let mut warnings = Vec::new();
    for (field_ref, expression) in expressions(policy) {
        warnings.extend(types.warning(expression).map(|warning| ExpressionWarning { field_ref, warning }));
        // A policy may hold thousands of expressions: others get their turn.
        tokio::task::yield_now().await;
    }
    let config = configuration(policy, &warnings);
    let write = CreateOptions { field_manager: MANAGER.to_owned(), ..CreateOptions::default() };
    let options = PatchOptions { write, force: Some(true) };
    let place = Place { part: Part::Subresource("status"), namespace: "", name };
    let context = account(USER);
    let applied = registry.apply(&context, &policies(), place, &config.to_json(), &options).await;
    // Deleted, or made anew, in the meantime: that comes as an event of its own.
    unless(applied, &[Reason::NotFound, Reason::Conflict])
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
        assert_eq!(expressions(&policy), expected.map(|(place, text)| (place.to_owned(), text)));
    }

    #[test]
    fn a_status_reports_the_observed_generation_and_what_is_wrong() {
        let policy = policy(r#"{"metadata": {"name": "p", "uid": "u", "generation": 3}}"#);
        let right = String::from_utf8(configuration(&policy, &[]).to_json()).unwrap();
        assert!(right.ends_with(r#""status":{"observedGeneration":3,"typeChecking":{}}}"#), "{right}");
        let wrong = ExpressionWarning { field_ref: "f".to_owned(), warning: "w".to_owned() };
        let wrong = configuration(&policy, &[wrong]);
        assert_eq!(wrong.at(&["status", "typeChecking", "expressionWarnings"]).items().count(), 1);
    }
}
