//! Evictions: a pod is deleted if the disruption budget that covers it can spare it.

mod budget;

use std::sync::Arc;

use portico_machinery::selector::LabelSelector;
use portico_machinery::status::Reason;
use portico_machinery::{GroupResource, Object, Status, time};

use super::binding::{created, set_condition};
use super::{Acting, Action, Asked, Outcome};
use crate::Result;
use crate::options::DeleteOptions;
use crate::served::Served;
use crate::stored;

/// `POST pods/p/eviction`.
pub(super) struct Eviction;

impl Action for Eviction {
    fn create<'a>(&'a self, asked: Asked<'a>) -> Acting<'a> {
        Box::pin(evict(asked))
    }
}

async fn evict(asked: Asked<'_>) -> Result<Outcome> {
    if asked.body.name() != asked.place.name {
        return Err(Box::new(Status::bad_request("name in URL does not match name in Eviction object")));
    }
    let mut options = delete_options(&asked)?;
    let Asked { inner, served, place, .. } = &asked;
    let record = inner.get(served, place.namespace, place.name).await?;
    let pod = stored::decode(&record);
    if !ignores_budgets(&pod) {
        spare(&asked, &pod, &mut options).await?;
        let now = time::rfc3339(inner.moment().now);
        let why = ("EvictionByEvictionAPI", "Eviction API: evicting");
        inner
            .modify(served, place.namespace, place.name, options.dry_run, |pod| {
                set_condition(pod, "DisruptionTarget", Some(why), &now);
                Ok(())
            })
            .await?;
    }
    inner.delete(served, place.namespace, place.name, &options).await?;
    Ok(Outcome::Said(created()))
}

/// The body's options; they and the query must agree on whether it is a dry run.
fn delete_options(asked: &Asked<'_>) -> Result<DeleteOptions> {
    let Some(node) = asked.body.get(&["deleteOptions"]) else {
        return Ok(DeleteOptions { dry_run: asked.options.dry_run, ..DeleteOptions::default() });
    };
    let object = Object::from_node(node).map_err(|e| Status::bad_request(e.to_string()))?;
    let options = DeleteOptions::from_body(&object.to_json(), "v1")?;
    if options.dry_run != asked.options.dry_run {
        return Err(Box::new(Status::bad_request(
            "Non-matching dry-run options in request and content: both or neither must ask for a dry run",
        )));
    }
    Ok(options)
}

/// Pods that nobody counts on any more, or not yet.
fn ignores_budgets(pod: &Object) -> bool {
    matches!(pod.str_at("status.phase"), "Pending" | "Succeeded" | "Failed")
        || pod.deletion_timestamp().is_some()
}

/// Asks the budget that covers the pod, and charges it.
async fn spare(asked: &Asked<'_>, pod: &Object, options: &mut DeleteOptions) -> Result<()> {
    let Asked { inner, place, .. } = asked;
    let budgets = inner.served(&GroupResource::new("policy", "poddisruptionbudgets"))?;
    let covering = covering(asked, &budgets, pod).await?;
    let budget = match covering.as_slice() {
        [] => return Ok(()),
        [one] => one,
        _ => {
            let mut status = Status::failure(
                Reason::Unknown,
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            );
            status.code = 500;
            return Err(Box::new(status));
        }
    };
    if !is_ready(pod) && budget::spares_unready(budget) {
        // Only as it was judged: a pod that became ready meanwhile is asked for again.
        options.preconditions.resource_version.get_or_insert_with(|| pod.resource_version().to_owned());
        return Ok(());
    }
    let now = time::rfc3339(inner.moment().now);
    inner
        .modify(&budgets, place.namespace, budget.name(), options.dry_run, |budget| {
            budget::charge(budget, place.name, &now)
        })
        .await?;
    Ok(())
}

/// Budgets whose selector takes the pod; those that cannot be read take nothing.
async fn covering(asked: &Asked<'_>, budgets: &Arc<Served>, pod: &Object) -> Result<Vec<Object>> {
    let options = crate::options::ListOptions::default();
    let page = asked.inner.list(budgets, asked.place.namespace, &options).await?;
    let takes = |budget: &Object| {
        let selector = LabelSelector::of_object(&budget.at(&["spec", "selector"])).ok().flatten();
        selector.is_some_and(|selector| selector.matches(|key| pod.label(key)))
    };
    Ok(page.records.iter().map(|record| stored::decode(record)).filter(takes).collect())
}

fn is_ready(pod: &Object) -> bool {
    crate::condition::is_true(pod, "Ready")
}
