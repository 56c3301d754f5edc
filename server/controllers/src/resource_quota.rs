//! Keeps `status.used` of ResourceQuotas (`resourcequota-controller`).
//!
//! Admission charges what is created; this controller counts what is there: when a quota is new or limits something else,
//! when objects go or use less, and once in a while. It reads the one log, counts a state of one moment, and writes by the
//! verbs of users. What is charged while it counts comes on top of what it has counted: no charge is lost.

pub mod aggregated;
mod count;
pub mod decide;
mod watched;
mod write;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use portico_kit::backoff::Policy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, Reconciled, WorkQueue, run_workers};
use portico_machinery::{GroupResource, Status};
use portico_quota::{Surroundings, evaluator};
use portico_registry::{ListOptions, Logged, Registry, Stored};
use tokio::time::Instant;

use crate::log::Listener;
use crate::rounds::at_intervals;
use aggregated::{ForeignCounts, OtherServers};
use count::Counter;
use watched::{ConcernedQuota, QuotaKey, Watched, quotas};
use write::Writer;

/// kube-controller-manager's name for it.
pub const NAME: &str = "resourcequota-controller";

/// From a change of an object to the count: others often follow at once.
const GATHER: Duration = Duration::from_millis(100);
/// The longest time from a change to the count, however long counting takes.
const MAX_GATHER: Duration = Duration::from_secs(30);
/// A quota is not counted again for so many times as long as counting it took.
const SHARE: u32 = 4;

/// How quotas are kept.
#[derive(Clone, Copy, Debug)]
pub struct QuotaSettings {
    /// How often all quotas are counted though nothing has changed; zero is never (`--resource-quota-sync-period`).
    pub sync_period: Duration,
    /// How many quotas are counted at a time (`--concurrent-resource-quota-syncs`).
    pub concurrent_syncs: usize,
}

/// The controller. Cheap to clone.
#[derive(Clone)]
pub struct ResourceQuotas {
    settings: QuotaSettings,
    queue: WorkQueue<QuotaKey>,
    /// Quotas whose status is incomplete: nothing is admitted before it is there.
    incomplete: WorkQueue<QuotaKey>,
    watched: Arc<Mutex<Watched>>,
    /// What is being counted: both queues may have the same quota.
    in_work: Arc<Mutex<HashSet<QuotaKey>>>,
    foreign: ForeignCounts,
}

impl ResourceQuotas {
    /// Knows nothing yet. `others` are the API servers that hold what is not ours.
    #[must_use]
    pub fn new(settings: QuotaSettings, others: Arc<dyn OtherServers>, metrics: &QueueMetrics) -> Self {
        let queue = |name| WorkQueue::with_metrics(name, Policy::CONTROLLER, metrics);
        Self {
            settings,
            queue: queue("resourcequota_primary"),
            incomplete: queue("resourcequota_priority"),
            watched: Arc::default(),
            in_work: Arc::default(),
            foreign: ForeignCounts::new(others, metrics),
        }
    }

    /// Starts what counts, until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let counter = Counter::new(registry.clone(), self.foreign.clone());
        for queue in [&self.queue, &self.incomplete] {
            let (worker, counter) = (self.clone(), counter.clone());
            run_workers(tasks, NAME, self.settings.concurrent_syncs, queue.clone(), move |key| {
                let (worker, counter) = (worker.clone(), counter.clone());
                async move { worker.reconcile(&counter, key).await }
            });
        }
        self.run_foreign_workers(tasks);
        if !self.settings.sync_period.is_zero() {
            let (period, again) = (self.settings.sync_period, self.clone());
            let resync = at_intervals(period, Policy::CONTROLLER, move || {
                again.add_all();
                std::future::ready(true)
            });
            tasks.spawn_until_cancelled("resourcequota-resync", resync);
        }
    }

    /// Starts what asks other servers for what quotas count.
    fn run_foreign_workers(&self, tasks: &TaskSet) {
        let (watched, changed) = (Arc::clone(&self.watched), self.clone());
        self.foreign.run_workers(
            tasks,
            move |collection| {
                watched.lock().of(&collection.namespace).any(|quota| quota.concerns(&collection.resource))
            },
            move |collection| {
                let watched = changed.watched.lock();
                let quotas = watched.of(&collection.namespace);
                quotas
                    .filter(|quota| quota.concerns(&collection.resource))
                    .for_each(|quota| changed.queue.add(QuotaKey::of(&quota.stored)));
            },
        );
    }

    fn add_all(&self) {
        self.watched.lock().all().for_each(|quota| self.queue.add(QuotaKey::of(&quota.stored)));
    }

    /// Counts a quota, unless that is under way: then it comes back.
    async fn reconcile(&self, counter: &Counter, key: QuotaKey) -> Result<Reconciled, Box<Status>> {
        if !self.in_work.lock().insert(key.clone()) {
            return Ok(Reconciled::Again(GATHER));
        }
        let _done = InWork { all: &self.in_work, key: &key };
        let began = Instant::now();
        let written = Writer { counter, key: &key }.write().await;
        self.watched.lock().counted(&key, began.elapsed());
        Ok(match written? {
            Some(changes_at) => Reconciled::Again(until(changes_at, Timestamp::now())),
            None => Reconciled::Done,
        })
    }

    /// Queues a quota by what its state asks for.
    fn on_quota(&self, change: &Logged) {
        if change.is_gone() {
            return self.watched.lock().remove(change.namespace(), change.name());
        }
        let quota = change.stored();
        // Decodes it before the lock is taken.
        let limits = decide::limits(quota.object());
        let is_new = self.watched.lock().put(quota.clone(), Instant::now());
        let was = change.before().map(|before| decide::limits(before.object()));
        if is_new || limits.0 != limits.1 || was.is_none_or(|was| was != limits) {
            self.queue_of(&quota).add(QuotaKey::of(&quota));
        }
    }

    /// Where a quota waits to be counted.
    fn queue_of(&self, quota: &Stored) -> &WorkQueue<QuotaKey> {
        if decide::is_incomplete(quota.object()) { &self.incomplete } else { &self.queue }
    }

    /// Queues the quotas that a change of an object concerns.
    fn on_object(&self, change: &Logged) {
        for quota in self.concerned(change) {
            if is_worth_counting(&quota, change) {
                self.queue.add_after(QuotaKey::of(&quota.stored), wait_after(quota.took));
            }
        }
    }

    /// The quotas that count objects of the kind that has changed: whether they count it, is found out without the lock.
    fn concerned(&self, change: &Logged) -> Vec<ConcernedQuota> {
        let (watched, now) = (self.watched.lock(), Instant::now());
        let concerned = watched.of(change.namespace()).filter(|quota| quota.concerns(change.resource()));
        concerned.map(|quota| quota.as_of(now)).collect()
    }

    /// Queues the quotas that count a custom resource, whose definition may be new.
    fn on_definition(&self, change: &Logged) {
        let count = format!("count/{}", change.name());
        let watched = self.watched.lock();
        let counting = watched.all().filter(|quota| decide::limited(quota.stored.object()).contains(&count));
        counting.for_each(|quota| self.queue.add(QuotaKey::of(&quota.stored)));
    }
}

impl Listener for ResourceQuotas {
    fn begin<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let all = registry.list(&quotas(), "", &ListOptions::default()).await?.items;
            // Queued, they are decoded: before the lock is taken.
            all.iter().for_each(|quota| self.queue_of(quota).add(QuotaKey::of(quota)));
            let (mut watched, now) = (self.watched.lock(), Instant::now());
            watched.clear();
            for quota in all {
                watched.put(quota, now);
            }
            Ok(())
        })
    }

    fn on_event(&self, change: &Logged) {
        let resource = change.resource();
        if *resource == quotas() {
            self.on_quota(change);
        } else if is_definition(resource) && !change.is_gone() {
            self.on_definition(change);
        }
        if !change.namespace().is_empty() {
            self.on_object(change);
        }
    }
}

/// A quota that is being counted; dropped, it is not any more.
struct InWork<'a> {
    all: &'a Mutex<HashSet<QuotaKey>>,
    key: &'a QuotaKey,
}

impl Drop for InWork<'_> {
    fn drop(&mut self) {
        self.all.lock().remove(self.key);
    }
}

/// Whether a change of an object, of a kind that the quota counts, may have changed what is used otherwise than by a charge.
fn is_worth_counting(quota: &ConcernedQuota, change: &Logged) -> bool {
    if change.is_gone() {
        return true;
    }
    let Some(before) = change.before() else { return quota.is_settling };
    let surroundings = Surroundings::default();
    let evaluator = evaluator(change.resource(), &surroundings);
    if evaluator.is_plain_count() {
        return false;
    }
    let (limits, after) = (quota.stored.object(), change.stored());
    quota.is_settling
        || decide::changes_usage(limits, &*evaluator, before.object(), after.object(), Timestamp::now())
}

/// From a change to the count, where counting takes so long.
fn wait_after(took: Duration) -> Duration {
    (took * SHARE).clamp(GATHER, MAX_GATHER)
}

/// From now to a moment at which something has changed.
fn until(moment: Timestamp, now: Timestamp) -> Duration {
    // Only a moment later it is over: a time that is just reached still counts.
    Duration::try_from(moment.duration_since(now)).unwrap_or_default() + Duration::from_millis(1)
}

fn is_definition(resource: &GroupResource) -> bool {
    resource.group == "apiextensions.k8s.io" && resource.resource == "customresourcedefinitions"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_counted_for_a_fifth_of_the_time_at_most() {
        for took in [0, 10, 200, 2_000, 7_500].map(Duration::from_millis) {
            assert!(wait_after(took) >= took * SHARE, "{took:?}");
        }
    }
}
