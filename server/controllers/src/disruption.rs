//! `disruption-controller`: maintains the status of PodDisruptionBudgets, which evictions check, and resets stale
//! DisruptionTarget conditions of pods.

mod decision;
mod scale;
mod selector_text;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::selector::LabelSelector;
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::{ListOptions, LogEntry, Registry, StoredObject};

use crate::account::{NamespacedName, service_account_context};
use crate::events::{EventRecorder, Events};
use crate::log::Listener;
use crate::selectors::Selectors;
use crate::write_result::ignore_reasons;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "disruption-controller";

/// Component that the controller's events name as their source.
const COMPONENT: &str = "controllermanager";

/// Delay between a change of a pod and the update of its budgets, to combine changes that follow at once.
const BATCH_DELAY: Duration = Duration::from_millis(50);

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct Disruption {
    budgets: WorkQueue<NamespacedName>,
    /// Pods with the condition DisruptionTarget.
    pods: WorkQueue<NamespacedName>,
    selectors: Arc<Mutex<Selectors>>,
    recorder: EventRecorder,
}

impl Disruption {
    /// Creates the controller.
    #[must_use]
    pub fn new(queues: &QueueMetrics, events: &Events) -> Self {
        Self {
            budgets: WorkQueue::with_metrics("disruption", BackoffPolicy::CONTROLLER, queues),
            pods: WorkQueue::with_metrics("stale_pod_disruption", BackoffPolicy::CONTROLLER, queues),
            selectors: Arc::default(),
            recorder: events.recorder(COMPONENT, NAME),
        }
    }

    /// Starts the workers, which run until `tasks` is cancelled: as upstream, one for budgets and one for pods.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, recorder) = (registry.clone(), self.recorder.clone());
        run_workers(tasks, NAME, 1, self.budgets.clone(), move |key| {
            let (registry, recorder) = (worker.clone(), recorder.clone());
            async move { reconcile_budget(&registry, &recorder, &key).await }
        });
        let registry = registry.clone();
        run_workers(tasks, "stale-pod-disruption", 1, self.pods.clone(), move |key| {
            let registry = registry.clone();
            async move { reset_stale_target(&registry, &key).await }
        });
    }

    fn on_budget(&self, change: &LogEntry) {
        let selector = if change.is_deleted() { None } else { selector_of(change.stored().object()) };
        self.selectors.lock().put(change.namespace(), change.name(), selector);
        if !change.is_deleted() {
            self.budgets.add(NamespacedName::new(change.namespace(), change.name()));
        }
    }

    fn on_pod(&self, change: &LogEntry) {
        let (pod, before) = (change.stored(), change.previous());
        let budgets: BTreeSet<String> = {
            let selectors = self.selectors.lock();
            let states = before.iter().chain([&pod]);
            states
                .flat_map(|pod| selectors.matching(pod.namespace(), &pod.record().value.indexed().labels))
                .collect()
        };
        if let (Some(first), true) = (budgets.first(), budgets.len() > 1) {
            let (namespace, name) = (change.namespace(), change.name());
            let message = format!(
                "Pod {namespace:?}/{name:?} matches multiple PodDisruptionBudgets.  Chose {first:?} arbitrarily."
            );
            self.recorder.warn(pod.object(), "MultiplePodDisruptionBudgets", message);
        }
        for budget in budgets {
            self.budgets.add_after(NamespacedName::new(change.namespace(), &budget), BATCH_DELAY);
        }
        if !change.is_deleted() {
            self.enqueue_stale_target(&pod);
        }
    }

    fn enqueue_stale_target(&self, pod: &StoredObject) {
        if may_be_disruption_target(pod)
            && let Some(delay) = decision::stale_after(pod.object(), Timestamp::now())
        {
            self.pods.add_after(NamespacedName::new(pod.namespace(), pod.name()), delay);
        }
    }
}

impl Listener for Disruption {
    fn resync<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let budgets = registry.list(&budgets(), "", &ListOptions::default()).await?.items;
            let pods = registry.list(&pods(), "", &ListOptions::default()).await?.items;
            let mut selectors = self.selectors.lock();
            selectors.clear();
            for budget in &budgets {
                selectors.put(budget.namespace(), budget.name(), selector_of(budget.object()));
                self.budgets.add(NamespacedName::new(budget.namespace(), budget.name()));
            }
            drop(selectors);
            pods.iter().for_each(|pod| self.enqueue_stale_target(pod));
            Ok(())
        })
    }

    fn on_event(&self, change: &LogEntry) {
        let resource = change.resource();
        match (resource.group.as_str(), resource.resource.as_str()) {
            ("policy", "poddisruptionbudgets") => self.on_budget(change),
            ("", "pods") => self.on_pod(change),
            _ => {}
        }
    }
}

fn budgets() -> GroupResource {
    GroupResource::new("policy", "poddisruptionbudgets")
}

fn pods() -> GroupResource {
    GroupResource::new("", "pods")
}

/// Returns the selector of a budget; `None`, which selects no pods, if it is missing or invalid.
fn selector_of(budget: &Object) -> Option<LabelSelector> {
    LabelSelector::from_object(&budget.at(&["spec", "selector"])).ok().flatten()
}

/// Returns true if a pod may have the condition DisruptionTarget, without decoding the pod.
fn may_be_disruption_target(pod: &StoredObject) -> bool {
    const CLAIM: &[u8] = b"\"DisruptionTarget\"";
    memchr::memmem::find(pod.record().value.json(), CLAIM).is_some()
}

async fn reconcile_budget(
    registry: &Registry,
    recorder: &EventRecorder,
    key: &NamespacedName,
) -> Result<ReconcileOutcome, Box<Status>> {
    let Some(stored) = registry.get_stored(&key.object_ref("policy", "poddisruptionbudgets")).await? else {
        return Ok(ReconcileOutcome::Done);
    };
    let (budget, now) = (stored.object(), Timestamp::now());
    let selected = match selector_of(budget) {
        Some(labels) => {
            let options = ListOptions { labels, ..ListOptions::default() };
            registry.list(&pods(), &key.namespace, &options).await?.items
        }
        None => Vec::new(),
    };
    let pods: Vec<&Object> = selected.iter().map(StoredObject::object).collect();
    if pods.is_empty() {
        recorder.normal(budget, "NoPods", "No matching pods found".to_owned());
    }
    let disrupted = decision::granted_evictions(budget, &pods, now);
    let reported = match expected(registry, budget, &pods).await {
        Ok(expected) => {
            warn_of_pods(recorder, budget, &pods, &disrupted.overdue);
            let healthy = decision::count_healthy(&pods, &disrupted);
            decision::with_status(budget, expected, healthy, &disrupted.pods, now)
        }
        Err(why) => {
            let message = format!("Failed to calculate the number of expected pods: {why}");
            recorder.warn(budget, "CalculateExpectedPodCountFailed", message);
            Some(decision::with_failure(budget, &why, now)).filter(|failed| failed != budget)
        }
    };
    if let Some(reported) = reported {
        registry.update_status(&service_account_context(NAME), &budgets(), reported).await?;
    }
    Ok(disrupted.recheck.map_or(ReconcileOutcome::Done, ReconcileOutcome::RequeueAfter))
}

/// Records warnings about pods that have no controller, and about pods that were not deleted in time.
fn warn_of_pods(recorder: &EventRecorder, budget: &Object, pods: &[&Object], overdue: &BTreeSet<String>) {
    let is_managed = |pod: &Object| pod.owner_references().iter().any(|owner| owner.controller == Some(true));
    if decision::needs_scale(budget) && !pods.iter().all(|pod| is_managed(pod)) {
        let selector = selector_text::format(budget);
        recorder.warn(budget, "UnmanagedPods", format!("Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value."));
    }
    for pod in pods.iter().filter(|pod| overdue.contains(pod.name())) {
        // Upstream prints the namespace twice instead of the name.
        let namespace = budget.namespace();
        let message = format!("Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't");
        recorder.warn(pod, "NotDeleted", message);
    }
}

async fn expected(
    registry: &Registry,
    budget: &Object,
    pods: &[&Object],
) -> Result<decision::ExpectedPods, String> {
    let count = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    let scale = match decision::needs_scale(budget) {
        true => scale::expected_scale(registry, pods).await.map_err(|error| error.to_string())?,
        false => 0,
    };
    decision::expected(budget, count, scale)
}

async fn reset_stale_target(
    registry: &Registry,
    key: &NamespacedName,
) -> Result<ReconcileOutcome, Box<Status>> {
    let Some(pod) = registry.get_stored(&key.object_ref("", "pods")).await? else {
        return Ok(ReconcileOutcome::Done);
    };
    let now = Timestamp::now();
    match decision::stale_after(pod.object(), now) {
        None => {}
        Some(delay) if !delay.is_zero() => return Ok(ReconcileOutcome::RequeueAfter(delay)),
        Some(_) => {
            let updated = decision::without_disruption_target(pod.object(), now);
            let written = registry.update_status(&service_account_context(NAME), &pods(), updated).await;
            ignore_reasons(written, &[Reason::NotFound])?;
        }
    }
    Ok(ReconcileOutcome::Done)
}
