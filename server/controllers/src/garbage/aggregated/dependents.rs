//! Dependents of local objects on other API servers. After deletions of owners, one sweep over all servers looks for the
//! dependents of all owners deleted in the meantime.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use portico_kit::backoff::Policy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, Reconciled, WorkQueue, run_workers};
use portico_machinery::Status;
use tokio::time::Instant;

use super::super::act::Actor;
use super::{ForeignObject, OtherServers, Outcome, Outcomes, decide};

/// Delay between the first deletion and the sweep, to combine deletions that follow at once.
const GATHER: Duration = Duration::from_secs(2);
/// Delay between sweeps while a server cannot be queried.
const AGAIN: Duration = Duration::from_secs(30);
/// Maximum number of remembered owners; the dependents of further ones are not deleted.
const REMEMBERED: usize = 65_536;

/// Pause after a sweep, as a multiple of its duration: a continuous series of deletions must not make other servers list all
/// their objects all the time.
const SHARE: u32 = 10;

/// Collector of dependents on other servers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ForeignDependents {
    others: Arc<dyn OtherServers>,
    queue: WorkQueue<()>,
    gone: Arc<Mutex<Outcomes>>,
    /// Earliest start of the next sweep; deletions that arrive earlier wait.
    not_before: Arc<Mutex<Option<Instant>>>,
}

impl ForeignDependents {
    pub(crate) fn new(others: Arc<dyn OtherServers>, metrics: &QueueMetrics) -> Self {
        let queue =
            WorkQueue::with_metrics("garbage_collector_foreign_dependents", Policy::CONTROLLER, metrics);
        Self { others, queue, gone: Arc::default(), not_before: Arc::default() }
    }

    /// Records that an owner is about to be deleted without its dependents.
    pub(crate) fn orphaned(&self, uid: &str) {
        self.remember(uid, Outcome::Orphaned);
    }

    /// Records that an owner is deleted.
    pub(crate) fn gone(&self, uid: &str) {
        self.remember(uid, Outcome::Deleted);
        let not_before = *self.not_before.lock();
        self.queue.add_after((), until_sweep(not_before, Instant::now()));
    }

    /// Stores the outcome of an owner; only the first one is kept.
    fn remember(&self, uid: &str, outcome: Outcome) {
        let mut gone = self.gone.lock();
        if gone.len() < REMEMBERED {
            gone.entry(uid.to_owned()).or_insert(outcome);
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

    async fn sweep(&self, actor: &Actor) -> Result<Reconciled, Box<Status>> {
        let began = Instant::now();
        let swept = self.sweep_all(actor).await;
        let rest = match &swept {
            Ok(Reconciled::Done) => SHARE * began.elapsed(),
            _ => AGAIN,
        };
        *self.not_before.lock() = Some(Instant::now() + rest);
        swept
    }

    async fn sweep_all(&self, actor: &Actor) -> Result<Reconciled, Box<Status>> {
        let outcomes = self.gone.lock().clone();
        let held = self.others.dependents(&outcomes).await;
        let mut complete = held.unreachable.is_empty();
        if !complete {
            tracing::info!(
                servers = held.unreachable.join(", "),
                "cannot search all API servers for dependents, retrying"
            );
        }
        for object in &held.objects {
            complete &= self.settle(actor, object, &outcomes).await?;
        }
        if !complete {
            return Ok(Reconciled::Again(AGAIN));
        }
        self.gone.lock().retain(|uid, _| !outcomes.contains_key(uid));
        Ok(Reconciled::Done)
    }

    /// Processes one dependent. Returns true if nothing remains to be done.
    async fn settle(
        &self,
        actor: &Actor,
        object: &ForeignObject,
        outcomes: &Outcomes,
    ) -> Result<bool, Box<Status>> {
        let mut others = Vec::new();
        for owner in object.owners.iter().filter(|owner| !outcomes.contains_key(&owner.uid)) {
            others.push((owner.clone(), actor.owner(&object.namespace, owner).await?));
        }
        let Ok(action) = decide::action(object, outcomes, others) else { return Ok(false) };
        let Some(action) = action else { return Ok(true) };
        match self.others.carry_out(object, &action).await {
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
fn until_sweep(not_before: Option<Instant>, now: Instant) -> Duration {
    not_before.map_or(GATHER, |not_before| not_before.saturating_duration_since(now).max(GATHER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletions_do_not_hasten_the_sweep_that_follows_an_incomplete_one() {
        let now = Instant::now();
        assert_eq!(until_sweep(None, now), GATHER);
        assert_eq!(until_sweep(Some(now + AGAIN), now), AGAIN);
        assert_eq!(until_sweep(Some(now), now + AGAIN), GATHER);
    }
}
