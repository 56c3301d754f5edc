//! Evictions: delete a pod if its disruption budget allows it.

mod budget;

use std::sync::Arc;

use portico_machinery::selector::LabelSelector;
use portico_machinery::status::Reason;
use portico_machinery::{GroupResource, Object, Status, time};

use super::binding::{created_status, set_condition};
use portico_registry::Result;
use portico_registry::ServedResource;
use portico_registry::delete::check_preconditions;
use portico_registry::options::DeleteOptions;
use portico_registry::stored_object;
use portico_registry::{Action, ActionFuture, ActionOutcome, ActionRequest, ResultFuture};

/// Action of `POST pods/NAME/eviction`.
pub(crate) struct Eviction;

impl Action for Eviction {
    fn prepare<'a>(&'a self, request: &'a mut ActionRequest<'_>) -> ResultFuture<'a, ()> {
        Box::pin(async { check(request) })
    }

    fn create<'a>(&'a self, request: ActionRequest<'a>) -> ActionFuture<'a> {
        Box::pin(evict(request))
    }
}

/// Maximum attempts to evict a pod that no budget protects, if the pod changes during an attempt.
const MAX_ATTEMPTS: usize = 20;

fn check(request: &ActionRequest<'_>) -> Result<()> {
    if request.body.name() != request.path.name {
        return Err(Box::new(Status::bad_request("name in URL does not match name in Eviction object")));
    }
    let namespace = request.body.namespace();
    if !namespace.is_empty() && namespace != request.path.namespace {
        return Err(Box::new(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )));
    }
    Ok(())
}

async fn evict(request: ActionRequest<'_>) -> Result<ActionOutcome> {
    let options = delete_options(&request)?;
    let mut attempts = 1;
    let pod = loop {
        let pod = stored_object::decode(
            &*request
                .verbs
                .objects
                .get(request.served_resource, request.path.namespace, request.path.name)
                .await?,
        );
        if !ignores_budgets(&pod) {
            break pod;
        }
        let pending = pod.str_at("status.phase") == "Pending" && pod.deletion_timestamp().is_none();
        let checked_options = if pending { with_resource_version(&options, &pod) } else { options.clone() };
        match delete_pod(&request, checked_options).await {
            Err(status) if has_pod_changed(&status, &options) && attempts < MAX_ATTEMPTS => attempts += 1,
            result => return result.map(|()| created_status()),
        }
    };
    match charge_budget(&request, &pod, options.dry_run).await? {
        None => delete_pod(&request, options).await?,
        Some(budget) => {
            delete_pod(&request, with_resource_version(&options, &pod)).await.map_err(|status| {
                if has_pod_changed(&status, &options) {
                    Box::new(budget::in_progress(&budget))
                } else {
                    status
                }
            })?
        }
    }
    Ok(created_status())
}

/// Adds the resource version of the validated pod to the preconditions: a pod that became ready in the meantime must be checked
/// against its budget again.
fn with_resource_version(options: &DeleteOptions, pod: &Object) -> DeleteOptions {
    let mut options = options.clone();
    options.preconditions.resource_version.get_or_insert_with(|| pod.resource_version().to_owned());
    options
}

/// True if the pod changed after it was validated and the client did not request a specific resource version.
fn has_pod_changed(status: &Status, options: &DeleteOptions) -> bool {
    status.reason() == Reason::Conflict && options.preconditions.resource_version.is_none()
}

/// Sets the `DisruptionTarget` condition of the pod, then deletes the pod at the resulting resource version.
async fn delete_pod(request: &ActionRequest<'_>, mut options: DeleteOptions) -> Result<()> {
    let ActionRequest { verbs, served_resource, path, .. } = request;
    if !options.dry_run {
        let now = time::rfc3339(verbs.objects.request_time().now);
        let reason_and_message = ("EvictionByEvictionAPI", "Eviction API: evicting");
        let updated = verbs
            .modify(served_resource, path.namespace, path.name, false, |pod| {
                let found = (pod.uid(), pod.resource_version());
                check_preconditions(served_resource, path.name, found, &options.preconditions)?;
                set_condition(pod, "DisruptionTarget", Some(reason_and_message), &now);
                Ok(())
            })
            .await?;
        if let Some(revision) = &mut options.preconditions.resource_version {
            updated.resource_version().clone_into(revision);
        }
    }
    verbs.delete_admitted(served_resource, path.namespace, path.name, &options).await?;
    Ok(())
}

/// Returns the delete options of the body. The body, the query, or both can request a dry run (upstream's `propagateDryRun`).
fn delete_options(request: &ActionRequest<'_>) -> Result<DeleteOptions> {
    let Some(node) = request.body.get(&["deleteOptions"]) else {
        return Ok(DeleteOptions { dry_run: request.options.dry_run, ..DeleteOptions::default() });
    };
    let object = Object::from_node(node).map_err(|e| Status::bad_request(e.to_string()))?;
    let options = DeleteOptions::from_body(&object.to_json())?;
    Ok(DeleteOptions { dry_run: options.dry_run || request.options.dry_run, ..options })
}

/// True if no budget counts the pod: it has not started, has ended, or is being deleted.
fn ignores_budgets(pod: &Object) -> bool {
    matches!(pod.str_at("status.phase"), "Pending" | "Succeeded" | "Failed")
        || pod.deletion_timestamp().is_some()
}

/// Charges the budget that covers the pod. Returns the name of the budget if the eviction is allowed without a charge because
/// the pod is not ready.
async fn charge_budget(request: &ActionRequest<'_>, pod: &Object, dry_run: bool) -> Result<Option<String>> {
    let ActionRequest { verbs, path, .. } = request;
    let budgets = verbs.objects.served_resource(&GroupResource::new("policy", "poddisruptionbudgets"))?;
    let covering = covering_budgets(request, &budgets, pod).await?;
    let budget = match covering.as_slice() {
        [] => return Ok(None),
        [budget] => budget,
        _ => {
            let mut status = Status::failure(
                Reason::Unknown,
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            );
            status.code = 500;
            return Err(Box::new(status));
        }
    };
    if !is_ready(pod) && budget::allows_unready(budget) {
        return Ok(Some(budget.name().to_owned()));
    }
    let now = time::rfc3339(verbs.objects.request_time().now);
    verbs
        .modify(&budgets, path.namespace, budget.name(), dry_run, |budget| {
            budget::charge(budget, path.name, &now)
        })
        .await?;
    Ok(None)
}

/// Returns the budgets whose selector matches the pod. Invalid selectors match no pods.
///
/// # Errors
/// 500 if a budget that may belong to the namespace cannot be read from the store: it may protect the pod.
async fn covering_budgets(
    request: &ActionRequest<'_>,
    budgets: &Arc<ServedResource>,
    pod: &Object,
) -> Result<Vec<Object>> {
    let options = portico_registry::options::ListOptions::default();
    let (objects, namespace) = (&request.verbs.objects, request.path.namespace);
    let page = objects.list(budgets, namespace, &options).await?;
    let covers_pod = |budget: &Object| {
        let selector = LabelSelector::from_object(&budget.at(&["spec", "selector"])).ok().flatten();
        selector.is_some_and(|selector| selector.matches(pod.label_entries()))
    };
    let records = objects.require_complete(budgets, namespace, page).await?;
    Ok(records.iter().map(|record| stored_object::decode(record)).filter(covers_pod).collect())
}

fn is_ready(pod: &Object) -> bool {
    portico_registry::condition::is_true(pod, "Ready")
}
