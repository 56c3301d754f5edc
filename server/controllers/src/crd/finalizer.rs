//! Deletes the instances of definitions that are being deleted, then removes the finalizer (condition Terminating).
//!
//! The finalizer is removed in the same write as the last state of the condition. Instances that have other finalizers are
//! awaited; the log reports their deletion.

mod decision;
mod instances;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::condition::{self, Condition};
use portico_registry::{LogEntry, Registry, StoredObject};
use tokio::time::Instant;

use super::condition_types::context;
use super::index::DefinitionName;
use crate::log::Listener;
use decision::{FinalizePlan, IN_PROGRESS};
use portico_registry::definition::{FINALIZER, TERMINATING, resource as definitions};

/// Upstream's number of workers: a definition with a million instances does not block all others.
const WORKERS: usize = 5;

/// Interval between checks for remaining instances. Deletions of instances trigger a check earlier.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Time after which waiting for instances is reported as a failure and the deletion starts again.
const DELETION_TIMEOUT: Duration = Duration::from_secs(60);

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct Finalizer {
    queue: WorkQueue<DefinitionName>,
    /// Definitions that wait for the deletion of their instances, and the start of the wait, by resource.
    waiting: Arc<Mutex<HashMap<GroupResource, (DefinitionName, Instant)>>>,
}

/// Result of an attempt that had no error.
enum FinalizeAttempt {
    /// The pass is complete: the definition is finalized, or its instances are still being deleted.
    Completed(ReconcileOutcome),
    /// Another client has changed the definition.
    Conflict,
}

impl Finalizer {
    /// Creates the controller.
    pub(super) fn new(metrics: &QueueMetrics) -> Self {
        Self {
            queue: WorkQueue::with_metrics("crd_finalizer", BackoffPolicy::CONTROLLER, metrics),
            waiting: Arc::default(),
        }
    }

    /// Enqueues a definition that is being deleted and has this controller's finalizer.
    pub(super) fn add(&self, name: DefinitionName) {
        self.queue.add(name);
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub(super) fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, registry) = (self.clone(), registry.clone());
        run_workers(tasks, "crd-finalizer", WORKERS, self.queue.clone(), move |name| {
            let (worker, registry) = (worker.clone(), registry.clone());
            async move { worker.reconcile(&registry, &name).await }
        });
    }

    async fn reconcile(
        &self,
        registry: &Registry,
        name: &DefinitionName,
    ) -> Result<ReconcileOutcome, Box<Status>> {
        let stored = match registry.get(&definitions(), "", name).await {
            Err(status) if status.reason() == Reason::NotFound => return Ok(self.stop_waiting(name)),
            read => read?,
        };
        let Some(plan) = decision::plan(stored.object()) else { return Ok(self.stop_waiting(name)) };
        match self.execute(registry, name, stored, plan).await {
            Ok(FinalizeAttempt::Completed(reconciled)) => Ok(reconciled),
            Ok(FinalizeAttempt::Conflict) => Ok(ReconcileOutcome::RequeueAfter(Duration::ZERO)),
            Err(status) if status.reason() == Reason::NotFound => Ok(self.stop_waiting(name)),
            Err(status) => Err(status),
        }
    }

    /// Stops waiting: the definition no longer needs this controller.
    fn stop_waiting(&self, name: &DefinitionName) -> ReconcileOutcome {
        self.waiting.lock().retain(|_, (waiting_name, _)| waiting_name != name);
        ReconcileOutcome::Done
    }

    async fn execute(
        &self,
        registry: &Registry,
        name: &DefinitionName,
        stored: StoredObject,
        plan: FinalizePlan,
    ) -> Result<FinalizeAttempt, Box<Status>> {
        let Some(stored) = report_in_progress(registry, stored).await? else {
            return Ok(FinalizeAttempt::Conflict);
        };
        let reported = match plan {
            FinalizePlan::KeepInstances(reported) => reported,
            FinalizePlan::DeleteInstances(resource) => {
                match self.delete_instances(registry, name, &resource).await {
                    Ok(true) => decision::completed_condition(),
                    Ok(false) => {
                        return Ok(FinalizeAttempt::Completed(ReconcileOutcome::RequeueAfter(
                            CHECK_INTERVAL,
                        )));
                    }
                    Err(failure) => {
                        write_condition(registry, &stored, failure.condition(), false).await?;
                        return Err(failure.into_status());
                    }
                }
            }
        };
        let ended = FinalizeAttempt::Completed(ReconcileOutcome::Done);
        Ok(write_condition(registry, &stored, reported, true)
            .await?
            .map_or(FinalizeAttempt::Conflict, |_| ended))
    }

    /// Deletes the instances in the first pass, and checks for remaining ones in later passes. Returns true if all are gone.
    async fn delete_instances(
        &self,
        registry: &Registry,
        name: &DefinitionName,
        resource: &GroupResource,
    ) -> Result<bool, instances::DeletionFailure> {
        // Registered before the instances are listed, so that deletions in between are seen as events.
        let waiting_since = {
            let mut waiting = self.waiting.lock();
            let previous_start = waiting.get(resource).map(|(_, since)| *since);
            waiting.entry(resource.clone()).or_insert_with(|| (Arc::clone(name), Instant::now()));
            previous_start
        };
        let result = match waiting_since {
            None => instances::delete_all(registry, resource).await,
            Some(since) if since.elapsed() >= DELETION_TIMEOUT => {
                Err(instances::DeletionFailure::timed_out())
            }
            Some(_) => instances::are_gone(registry, resource).await,
        };
        if !matches!(result, Ok(false)) {
            self.waiting.lock().remove(resource);
        }
        result
    }
}

impl Listener for Finalizer {
    /// Enqueues waiting definitions. The definitions' follower enqueues all that are being deleted.
    fn resync<'a>(&'a self, _registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        self.waiting.lock().values().for_each(|(name, _)| self.queue.add(Arc::clone(name)));
        Box::pin(async { Ok(()) })
    }

    fn on_event(&self, change: &LogEntry) {
        if !change.is_deleted() {
            return;
        }
        if let Some((name, _)) = self.waiting.lock().get(change.resource()) {
            self.queue.add(Arc::clone(name));
        }
    }
}

/// Reports that the deletion is in progress, unless a failure is reported already. Returns `None` after a conflict.
async fn report_in_progress(
    registry: &Registry,
    stored: StoredObject,
) -> Result<Option<StoredObject>, Box<Status>> {
    let failed = condition::get(stored.object(), TERMINATING).filter(decision::is_failure);
    match failed {
        Some(_) => Ok(Some(stored)),
        None => {
            write_condition(
                registry,
                &stored,
                decision::terminating_condition("True", IN_PROGRESS.0, IN_PROGRESS.1),
                false,
            )
            .await
        }
    }
}

/// Writes the condition, and removes the finalizer if `is_done`. Returns `None` after a conflict.
async fn write_condition(
    registry: &Registry,
    stored: &StoredObject,
    reported: Condition,
    is_done: bool,
) -> Result<Option<StoredObject>, Box<Status>> {
    let mut object: Object = stored.object().clone();
    condition::set(&mut object, reported, Timestamp::now());
    if is_done {
        let remaining: Vec<String> =
            object.finalizers().into_iter().filter(|f| *f != FINALIZER).map(str::to_owned).collect();
        object.set(&["metadata", "finalizers"], remaining);
    }
    match registry.update_status(&context(), &definitions(), object).await {
        Ok(written) => Ok(Some(written.stored)),
        Err(status) if status.reason() == Reason::Conflict => Ok(None),
        Err(status) => Err(status),
    }
}
