//! Dependents of local objects on other API servers. After deletions of owners, one sweep over all servers looks for the
//! dependents of all owners deleted in the meantime.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::Status;
use tokio::time::Instant;

use super::super::actor::Actor;
use super::{ForeignObject, ForeignObjectClient, OwnerOutcome, OwnerOutcomes, decision};

/// Delay between the first deletion and the sweep, to combine deletions that follow at once.
const BATCH_DELAY: Duration = Duration::from_secs(2);
/// Delay between sweeps while a server cannot be queried.
const RETRY_DELAY: Duration = Duration::from_secs(30);
/// Maximum number of remembered owners; the dependents of further ones are not deleted.
const MAX_OWNERS: usize = 65_536;

/// Pause after a sweep, as a multiple of its duration: a continuous series of deletions must not make other servers list all
/// their objects all the time.
const PAUSE_FACTOR: u32 = 10;

/// Collector of dependents on other servers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ForeignDependents {
    client: Arc<dyn ForeignObjectClient>,
    queue: WorkQueue<()>,
    deleted_owners: Arc<Mutex<OwnerOutcomes>>,
    /// Earliest start of the next sweep; deletions that arrive earlier wait.
    not_before: Arc<Mutex<Option<Instant>>>,
}

impl ForeignDependents {
    pub(crate) fn new(client: Arc<dyn ForeignObjectClient>, metrics: &QueueMetrics) -> Self {
        let queue = WorkQueue::with_metrics(
            "garbage_collector_foreign_dependents",
            BackoffPolicy::CONTROLLER,
            metrics,
        );
        Self { client, queue, deleted_owners: Arc::default(), not_before: Arc::default() }
    }

    /// Records that an owner is about to be deleted without its dependents.
    pub(crate) fn record_orphaned(&self, uid: &str) {
        self.remember(uid, OwnerOutcome::Orphaned);
    }

    /// Records that an owner is deleted.
    pub(crate) fn record_deleted(&self, uid: &str) {
        self.remember(uid, OwnerOutcome::Deleted);
        let not_before = *self.not_before.lock();
        self.queue.add_after((), delay_until_sweep(not_before, Instant::now()));
    }

    /// Records the outcome of an owner. A recorded outcome is not replaced.
    fn remember(&self, uid: &str, outcome: OwnerOutcome) {
        let mut outcomes = self.deleted_owners.lock();
        if outcomes.len() < MAX_OWNERS {
            outcomes.entry(uid.to_owned()).or_insert(outcome);
        } else {
            tracing::warn!(
                uid,
                "too many pending deletions, dependents on other API servers are not collected"
            );
        }
    }

    /// Starts the sweeper, which runs until `tasks` is cancelled.
    pub(crate) fn run_worker(&self, actor: &Actor, tasks: &TaskSet) {
        let (sweeper, actor) = (self.clone(), actor.clone());
        run_workers(tasks, "garbage-collector-dependents", 1, self.queue.clone(), move |()| {
            let (sweeper, actor) = (sweeper.clone(), actor.clone());
            async move { sweeper.sweep(&actor).await }
        });
    }

    async fn sweep(&self, actor: &Actor) -> Result<ReconcileOutcome, Box<Status>> {
        let start = Instant::now();
        let result = self.sweep_all(actor).await;
        let pause = match &result {
            Ok(ReconcileOutcome::Done) => PAUSE_FACTOR * start.elapsed(),
            _ => RETRY_DELAY,
        };
        *self.not_before.lock() = Some(Instant::now() + pause);
        result
    }

    async fn sweep_all(&self, actor: &Actor) -> Result<ReconcileOutcome, Box<Status>> {
        let outcomes = self.deleted_owners.lock().clone();
        let dependents = self.client.dependents(&outcomes).await;
        let mut complete = dependents.unreachable.is_empty();
        if !complete {
            tracing::info!(
                servers = dependents.unreachable.join(", "),
                "cannot search all API servers for dependents, retrying"
            );
        }
        for object in &dependents.objects {
            complete &= self.process(actor, object, &outcomes).await?;
        }
        if !complete {
            return Ok(ReconcileOutcome::RequeueAfter(RETRY_DELAY));
        }
        self.deleted_owners.lock().retain(|uid, _| !outcomes.contains_key(uid));
        Ok(ReconcileOutcome::Done)
    }

    /// Processes one dependent. Returns true if nothing remains to be done.
    async fn process(
        &self,
        actor: &Actor,
        object: &ForeignObject,
        outcomes: &OwnerOutcomes,
    ) -> Result<bool, Box<Status>> {
        let mut other_owners = Vec::new();
        for owner in object.owners.iter().filter(|owner| !outcomes.contains_key(&owner.uid)) {
            other_owners.push((owner.clone(), actor.owner(&object.namespace, owner).await?));
        }
        let Ok(action) = decision::action(object, outcomes, other_owners) else { return Ok(false) };
        let Some(action) = action else { return Ok(true) };
        match self.client.execute(object, &action).await {
            Ok(()) => Ok(true),
            Err(error) => {
                tracing::info!(
                    path = object.path,
                    error,
                    "cannot update a dependent on another API server, retrying"
                );
                Ok(false)
            }
        }
    }
}

/// Returns the delay between a deletion and its sweep.
fn delay_until_sweep(not_before: Option<Instant>, now: Instant) -> Duration {
    not_before.map_or(BATCH_DELAY, |not_before| not_before.saturating_duration_since(now).max(BATCH_DELAY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletions_do_not_hasten_the_sweep_that_follows_an_incomplete_one() {
        let now = Instant::now();
        assert_eq!(delay_until_sweep(None, now), BATCH_DELAY);
        assert_eq!(delay_until_sweep(Some(now + RETRY_DELAY), now), RETRY_DELAY);
        assert_eq!(delay_until_sweep(Some(now), now + RETRY_DELAY), BATCH_DELAY);
    }
}
