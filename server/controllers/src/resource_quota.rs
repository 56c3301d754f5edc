//! Maintains `status.used` of ResourceQuotas (`resourcequota-controller`).
//!
//! Admission charges new objects; this controller counts existing ones: when a quota is new or its limits change, when objects
//! are deleted or use less, and periodically. It reads the log, counts a consistent snapshot, and writes with the verbs of
//! users. Charges made during a count are added to its result, so that no charge is lost.

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

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "resourcequota-controller";

/// Minimum delay between a change of an object and the count, to combine changes that follow at once.
const GATHER: Duration = Duration::from_millis(100);
/// Maximum delay between a change and the count, regardless of the duration of counts.
const MAX_GATHER: Duration = Duration::from_secs(30);
/// Delay between a change and the count, as a multiple of the duration of the last count.
const SHARE: u32 = 4;

/// Settings of the quota controller.
#[derive(Clone, Copy, Debug)]
pub struct QuotaSettings {
    /// Interval between counts of all quotas without changes; zero disables them (`--resource-quota-sync-period`).
    pub sync_period: Duration,
    /// Number of quotas counted concurrently (`--concurrent-resource-quota-syncs`).
    pub concurrent_syncs: usize,
}

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct ResourceQuotas {
    settings: QuotaSettings,
    queue: WorkQueue<QuotaKey>,
    /// Queue of quotas with an incomplete status: nothing is admitted until the status is complete.
    incomplete: WorkQueue<QuotaKey>,
    watched: Arc<Mutex<Watched>>,
    /// Quotas that are being counted, because a quota can be in both queues.
    in_work: Arc<Mutex<HashSet<QuotaKey>>>,
    foreign: ForeignCounts,
}

impl ResourceQuotas {
    /// Creates the controller. `others` are the API servers with objects that this server does not store.
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

    /// Starts the workers, which run until `tasks` is cancelled.
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

    /// Starts the workers that query other servers for the objects that quotas count.
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

    /// Counts a quota; if it is already being counted, enqueues it again.
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

    /// Enqueues a quota if its limits or status require a count.
    fn on_quota(&self, change: &Logged) {
        if change.is_gone() {
            return self.watched.lock().remove(change.namespace(), change.name());
        }
        let quota = change.stored();
        // Decodes the quota before taking the lock.
        let limits = decide::limits(quota.object());
        let is_new = self.watched.lock().put(quota.clone(), Instant::now());
        let was = change.before().map(|before| decide::limits(before.object()));
        if is_new || limits.0 != limits.1 || was.is_none_or(|was| was != limits) {
            self.queue_of(&quota).add(QuotaKey::of(&quota));
        }
    }

    /// Returns the queue of a quota.
    fn queue_of(&self, quota: &Stored) -> &WorkQueue<QuotaKey> {
        if decide::is_incomplete(quota.object()) { &self.incomplete } else { &self.queue }
    }

    /// Enqueues the quotas that a change of an object affects.
    fn on_object(&self, change: &Logged) {
        for quota in self.concerned(change) {
            if is_worth_counting(&quota, change) {
                self.queue.add_after(QuotaKey::of(&quota.stored), wait_after(quota.took));
            }
        }
    }

    /// Returns the quotas that count objects of the changed kind. Checks of the object itself are made without the lock.
    fn concerned(&self, change: &Logged) -> Vec<ConcernedQuota> {
        let (watched, now) = (self.watched.lock(), Instant::now());
        let concerned = watched.of(change.namespace()).filter(|quota| quota.concerns(change.resource()));
        concerned.map(|quota| quota.as_of(now)).collect()
    }

    /// Enqueues the quotas that count a custom resource, whose definition may be new.
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
            // Enqueueing decodes the quotas, before the lock is taken.
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

/// Guard of a quota that is being counted.
struct InWork<'a> {
    all: &'a Mutex<HashSet<QuotaKey>>,
    key: &'a QuotaKey,
}

impl Drop for InWork<'_> {
    fn drop(&mut self) {
        self.all.lock().remove(self.key);
    }
}

/// Returns true if a change of an object, of a kind that the quota counts, may have changed the usage other than by a charge.
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

/// Returns the delay between a change and the count, from the duration of the last count.
fn wait_after(took: Duration) -> Duration {
    (took * SHARE).clamp(GATHER, MAX_GATHER)
}

/// Returns the time until the usage changes without a write.
fn until(moment: Timestamp, now: Timestamp) -> Duration {
    // One millisecond later: an object still counts at the exact time.
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
