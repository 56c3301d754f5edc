//! Maintains `status.used` of ResourceQuotas (`resourcequota-controller`).
//!
//! Admission charges new objects; this controller counts existing ones: when a quota is new or its limits change, when objects
//! are deleted or use less, and periodically. It reads the log, counts a consistent snapshot, and writes with the verbs of
//! users. Charges made during a count are added to its result, so that no charge is lost.

mod counter;
pub mod decision;
pub mod foreign_counts;
mod quota_index;
mod writer;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::{GroupResource, Status};
use portico_quota::{DeviceContext, evaluator};
use portico_registry::{ListOptions, LogEntry, Registry, StoredObject};
use tokio::time::Instant;

use crate::log::Listener;
use crate::periodic::at_intervals;
use counter::QuotaCounter;
use foreign_counts::{ForeignCountClient, ForeignCounts};
use quota_index::{AffectedQuota, QuotaIndex, QuotaKey, quotas};
use writer::QuotaWriter;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "resourcequota-controller";

/// Minimum delay between a change of an object and the count, to combine changes that follow at once.
const BATCH_DELAY: Duration = Duration::from_millis(100);
/// Maximum delay between a change and the count, regardless of the duration of counts.
const MAX_BATCH_DELAY: Duration = Duration::from_secs(30);
/// Delay between a change and the count, as a multiple of the duration of the last count.
const DELAY_FACTOR: u32 = 4;

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
    watched: Arc<Mutex<QuotaIndex>>,
    /// Quotas that are being counted, because a quota can be in both queues.
    in_progress: Arc<Mutex<HashSet<QuotaKey>>>,
    foreign: ForeignCounts,
}

impl ResourceQuotas {
    /// Creates the controller. `client` accesses API servers with objects that this server does not store.
    #[must_use]
    pub fn new(settings: QuotaSettings, client: Arc<dyn ForeignCountClient>, metrics: &QueueMetrics) -> Self {
        let queue = |name| WorkQueue::with_metrics(name, BackoffPolicy::CONTROLLER, metrics);
        Self {
            settings,
            queue: queue("resourcequota_primary"),
            incomplete: queue("resourcequota_priority"),
            watched: Arc::default(),
            in_progress: Arc::default(),
            foreign: ForeignCounts::new(client, metrics),
        }
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let counter = QuotaCounter::new(registry.clone(), self.foreign.clone());
        for queue in [&self.queue, &self.incomplete] {
            let (worker, counter) = (self.clone(), counter.clone());
            run_workers(tasks, NAME, self.settings.concurrent_syncs, queue.clone(), move |key| {
                let (worker, counter) = (worker.clone(), counter.clone());
                async move { worker.reconcile(&counter, key).await }
            });
        }
        self.run_foreign_workers(tasks);
        if !self.settings.sync_period.is_zero() {
            let (period, controller) = (self.settings.sync_period, self.clone());
            let resync = at_intervals(period, BackoffPolicy::CONTROLLER, move || {
                controller.add_all();
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
                watched
                    .lock()
                    .in_namespace(&collection.namespace)
                    .any(|quota| quota.may_count(&collection.resource))
            },
            move |collection| {
                let watched = changed.watched.lock();
                let quotas = watched.in_namespace(&collection.namespace);
                quotas
                    .filter(|quota| quota.may_count(&collection.resource))
                    .for_each(|quota| changed.queue.add(QuotaKey::of(&quota.stored)));
            },
        );
    }

    fn add_all(&self) {
        self.watched.lock().all().for_each(|quota| self.queue.add(QuotaKey::of(&quota.stored)));
    }

    /// Counts a quota; if it is already being counted, enqueues it again.
    async fn reconcile(
        &self,
        counter: &QuotaCounter,
        key: QuotaKey,
    ) -> Result<ReconcileOutcome, Box<Status>> {
        if !self.in_progress.lock().insert(key.clone()) {
            return Ok(ReconcileOutcome::RequeueAfter(BATCH_DELAY));
        }
        let _done = CountGuard { all: &self.in_progress, key: &key };
        let start = Instant::now();
        let written = QuotaWriter { counter, key: &key }.write().await;
        self.watched.lock().set_count_duration(&key, start.elapsed());
        Ok(match written? {
            Some(changes_at) => ReconcileOutcome::RequeueAfter(time_until(changes_at, Timestamp::now())),
            None => ReconcileOutcome::Done,
        })
    }

    /// Enqueues a quota if its limits or status require a count.
    fn on_quota(&self, change: &LogEntry) {
        if change.is_deleted() {
            return self.watched.lock().remove(change.namespace(), change.name());
        }
        let quota = change.stored();
        // Decodes the quota before taking the lock.
        let limits = decision::limits(quota.object());
        let is_new = self.watched.lock().put(quota.clone(), Instant::now());
        let previous_limits = change.previous().map(|before| decision::limits(before.object()));
        if is_new || limits.0 != limits.1 || previous_limits.is_none_or(|was| was != limits) {
            self.queue_of(&quota).add(QuotaKey::of(&quota));
        }
    }

    /// Returns the queue of a quota.
    fn queue_of(&self, quota: &StoredObject) -> &WorkQueue<QuotaKey> {
        if decision::is_incomplete(quota.object()) { &self.incomplete } else { &self.queue }
    }

    /// Enqueues the quotas that a change of an object affects.
    fn on_object(&self, change: &LogEntry) {
        for quota in self.affected_quotas(change) {
            if needs_recount(&quota, change) {
                self.queue.add_after(QuotaKey::of(&quota.stored), count_delay(quota.count_duration));
            }
        }
    }

    /// Returns the quotas that count objects of the changed kind. Checks of the object itself are made without the lock.
    fn affected_quotas(&self, change: &LogEntry) -> Vec<AffectedQuota> {
        let (watched, now) = (self.watched.lock(), Instant::now());
        let affected =
            watched.in_namespace(change.namespace()).filter(|quota| quota.may_count(change.resource()));
        affected.map(|quota| quota.snapshot_at(now)).collect()
    }

    /// Enqueues the quotas that count a custom resource, whose definition may be new.
    fn on_definition(&self, change: &LogEntry) {
        let count = format!("count/{}", change.name());
        let watched = self.watched.lock();
        let counting_quotas =
            watched.all().filter(|quota| decision::limited_resources(quota.stored.object()).contains(&count));
        counting_quotas.for_each(|quota| self.queue.add(QuotaKey::of(&quota.stored)));
    }
}

impl Listener for ResourceQuotas {
    fn resync<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
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

    fn on_event(&self, change: &LogEntry) {
        let resource = change.resource();
        if *resource == quotas() {
            self.on_quota(change);
        } else if is_definition(resource) && !change.is_deleted() {
            self.on_definition(change);
        }
        if !change.namespace().is_empty() {
            self.on_object(change);
        }
    }
}

/// Guard of a quota that is being counted.
struct CountGuard<'a> {
    all: &'a Mutex<HashSet<QuotaKey>>,
    key: &'a QuotaKey,
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.all.lock().remove(self.key);
    }
}

/// Returns true if a change of an object, of a kind that the quota counts, may have changed the usage other than by a charge.
fn needs_recount(quota: &AffectedQuota, change: &LogEntry) -> bool {
    if change.is_deleted() {
        return true;
    }
    let Some(before) = change.previous() else { return quota.is_settling };
    let device_context = DeviceContext::default();
    let evaluator = evaluator(change.resource(), &device_context);
    if evaluator.is_plain_count() {
        return false;
    }
    let (limits, after) = (quota.stored.object(), change.stored());
    quota.is_settling
        || decision::changes_usage(limits, &*evaluator, before.object(), after.object(), Timestamp::now())
}

/// Returns the delay between a change and the count, from the duration of the last count.
fn count_delay(took: Duration) -> Duration {
    (took * DELAY_FACTOR).clamp(BATCH_DELAY, MAX_BATCH_DELAY)
}

/// Returns the time until the usage changes without a write.
fn time_until(time: Timestamp, now: Timestamp) -> Duration {
    // One millisecond later: an object still counts at the exact time.
    Duration::try_from(time.duration_since(now)).unwrap_or_default() + Duration::from_millis(1)
}

fn is_definition(resource: &GroupResource) -> bool {
    resource.group == "apiextensions.k8s.io" && resource.resource == "customresourcedefinitions"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_a_quota_takes_at_most_a_fifth_of_the_time() {
        for took in [0, 10, 200, 2_000, 7_500].map(Duration::from_millis) {
            assert!(count_delay(took) >= took * DELAY_FACTOR, "{took:?}");
        }
    }
}
