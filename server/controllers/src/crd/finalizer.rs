//! Deletes the instances of definitions that are being deleted, then lets the definitions go (condition Terminating).
//!
//! It removes its own finalizer, in one write with the last state of the condition. It waits for instances that have
//! other finalizers; the log shows when one goes.

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

/// Upstream's number: one definition with a million instances does not hold up all others.
const WORKERS: usize = 5;

/// What is left is looked at again when something goes, and after this long in any case.
const PERIOD: Duration = Duration::from_secs(5);
/// After so long without an end a failure is reported, and everything begins again.
const PATIENCE: Duration = Duration::from_secs(60);

/// The controller. Cheap to clone.
#[derive(Clone)]
pub struct Finalizer {
    queue: WorkQueue<Name>,
    /// Definitions that wait for their instances to go, and since when.
    waiting: Arc<Mutex<HashMap<GroupResource, (Name, Instant)>>>,
}

/// How an attempt ends that was not refused.
enum Attempt {
    /// The definition waits no more, or its instances are still going.
    Ended(Reconciled),
    /// Somebody else has written it meanwhile.
    Overtaken,
}

impl Finalizer {
    /// Knows nothing yet.
    pub(super) fn new(metrics: &QueueMetrics) -> Self {
        Self {
            queue: WorkQueue::with_metrics("crd_finalizer", Policy::CONTROLLER, metrics),
            waiting: Arc::default(),
        }
    }

    /// A definition is being deleted and held by this controller.
    pub(super) fn add(&self, name: Name) {
        self.queue.add(name);
    }

    /// Starts what deletes, until `tasks` is cancelled.
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

    /// The definition does not wait for this controller, whoever saw to that.
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

    /// Whether all instances are gone. They are deleted once; after that they are waited for.
    async fn empty(
        &self,
        registry: &Registry,
        name: &Name,
        resource: &GroupResource,
    ) -> Result<bool, instances::Failure> {
        // Known before they are looked at: one that goes in between comes as an event.
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
    /// The definitions' follower lists all that are being deleted; who waits looks again.
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

/// Reports that the deletion is in progress, unless a failure is reported already; nothing when somebody was faster.
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

/// Writes the condition, and takes the finalizer off when that was all; nothing when somebody was faster.
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
