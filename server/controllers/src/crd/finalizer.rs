//! Deletes the instances of definitions that are being deleted, then removes the finalizer (condition Terminating).
//!
//! The finalizer is removed in the same write as the last state of the condition. Instances that have other finalizers are
//! awaited; the log reports their deletion.

mod decide;
mod instances;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use portico_kit::backoff::Policy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, Reconciled, WorkQueue, run_workers};
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::condition::{self, Condition};
use portico_registry::{Logged, Registry, Stored};
use tokio::time::Instant;

use super::condition_types::context;
use super::index::Name;
use crate::log::Listener;
use decide::{IN_PROGRESS, Plan};
use portico_registry::definition::{FINALIZER, TERMINATING, resource as definitions};

/// Upstream's number of workers: a definition with a million instances does not block all others.
const WORKERS: usize = 5;

/// Interval between checks for remaining instances. Deletions of instances trigger a check earlier.
const PERIOD: Duration = Duration::from_secs(5);
/// Time after which waiting for instances is reported as a failure and the deletion starts again.
const PATIENCE: Duration = Duration::from_secs(60);

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct Finalizer {
    queue: WorkQueue<Name>,
    /// Definitions that wait for the deletion of their instances, and the start of the wait, by resource.
    waiting: Arc<Mutex<HashMap<GroupResource, (Name, Instant)>>>,
}

/// Result of an attempt that had no error.
enum Attempt {
    /// The pass is complete: the definition is finalized, or its instances are still being deleted.
    Ended(Reconciled),
    /// Another client has changed the definition.
    Overtaken,
}

impl Finalizer {
    /// Creates the controller.
    pub(super) fn new(metrics: &QueueMetrics) -> Self {
        Self {
            queue: WorkQueue::with_metrics("crd_finalizer", Policy::CONTROLLER, metrics),
            waiting: Arc::default(),
        }
    }

    /// Enqueues a definition that is being deleted and has this controller's finalizer.
    pub(super) fn add(&self, name: Name) {
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

    async fn reconcile(&self, registry: &Registry, name: &Name) -> Result<Reconciled, Box<Status>> {
        let stored = match registry.get(&definitions(), "", name).await {
            Err(status) if status.reason() == Reason::NotFound => return Ok(self.leave(name)),
            read => read?,
        };
        let Some(plan) = decide::plan(stored.object()) else { return Ok(self.leave(name)) };
        match self.carry_out(registry, name, stored, plan).await {
            Ok(Attempt::Ended(reconciled)) => Ok(reconciled),
            Ok(Attempt::Overtaken) => Ok(Reconciled::Again(Duration::ZERO)),
            Err(status) if status.reason() == Reason::NotFound => Ok(self.leave(name)),
            Err(status) => Err(status),
        }
    }

    /// Stops waiting: the definition no longer needs this controller.
    fn leave(&self, name: &Name) -> Reconciled {
        self.waiting.lock().retain(|_, (waits, _)| waits != name);
        Reconciled::Done
    }

    async fn carry_out(
        &self,
        registry: &Registry,
        name: &Name,
        stored: Stored,
        plan: Plan,
    ) -> Result<Attempt, Box<Status>> {
        let Some(stored) = begin(registry, stored).await? else { return Ok(Attempt::Overtaken) };
        let reported = match plan {
            Plan::Leave(reported) => reported,
            Plan::Empty(resource) => match self.empty(registry, name, &resource).await {
                Ok(true) => decide::completed(),
                Ok(false) => return Ok(Attempt::Ended(Reconciled::Again(PERIOD))),
                Err(failure) => {
                    write_condition(registry, &stored, failure.condition(), false).await?;
                    return Err(failure.status());
                }
            },
        };
        let ended = Attempt::Ended(Reconciled::Done);
        Ok(write_condition(registry, &stored, reported, true).await?.map_or(Attempt::Overtaken, |_| ended))
    }

    /// Deletes the instances in the first pass, and checks for remaining ones in later passes. Returns true if all are gone.
    async fn empty(
        &self,
        registry: &Registry,
        name: &Name,
        resource: &GroupResource,
    ) -> Result<bool, instances::Failure> {
        // Registered before the instances are listed, so that deletions in between are seen as events.
        let waits_since = {
            let mut waiting = self.waiting.lock();
            let known = waiting.get(resource).map(|(_, since)| *since);
            waiting.entry(resource.clone()).or_insert_with(|| (Arc::clone(name), Instant::now()));
            known
        };
        let emptied = match waits_since {
            None => instances::delete(registry, resource).await,
            Some(since) if since.elapsed() >= PATIENCE => Err(instances::Failure::still_there()),
            Some(_) => instances::are_gone(registry, resource).await,
        };
        if !matches!(emptied, Ok(false)) {
            self.waiting.lock().remove(resource);
        }
        emptied
    }
}

impl Listener for Finalizer {
    /// Enqueues waiting definitions. The definitions' follower enqueues all that are being deleted.
    fn begin<'a>(&'a self, _registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        self.waiting.lock().values().for_each(|(name, _)| self.queue.add(Arc::clone(name)));
        Box::pin(async { Ok(()) })
    }

    fn on_event(&self, change: &Logged) {
        if !change.is_gone() {
            return;
        }
        if let Some((name, _)) = self.waiting.lock().get(change.resource()) {
            self.queue.add(Arc::clone(name));
        }
    }
}

/// Reports that the deletion is in progress, unless a failure is reported already. Returns `None` after a conflict.
async fn begin(registry: &Registry, stored: Stored) -> Result<Option<Stored>, Box<Status>> {
    let failed = condition::get(stored.object(), TERMINATING).filter(decide::is_failure);
    match failed {
        Some(_) => Ok(Some(stored)),
        None => {
            write_condition(
                registry,
                &stored,
                decide::terminating("True", IN_PROGRESS.0, IN_PROGRESS.1),
                false,
            )
            .await
        }
    }
}

/// Writes the condition, and removes the finalizer if `is_done`. Returns `None` after a conflict.
async fn write_condition(
    registry: &Registry,
    stored: &Stored,
    reported: Condition,
    is_done: bool,
) -> Result<Option<Stored>, Box<Status>> {
    let mut object: Object = stored.object().clone();
    condition::set(&mut object, reported, Timestamp::now());
    if is_done {
        let others: Vec<String> =
            object.finalizers().into_iter().filter(|f| *f != FINALIZER).map(str::to_owned).collect();
        object.set(&["metadata", "finalizers"], others);
    }
    match registry.update_status(&context(), &definitions(), object).await {
        Ok(written) => Ok(Some(written.stored)),
        Err(status) if status.reason() == Reason::Conflict => Ok(None),
        Err(status) => Err(status),
    }
}
