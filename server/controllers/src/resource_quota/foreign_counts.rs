//! Polls aggregated API servers for counts of the objects that quotas limit, in separate tasks: an unavailable server delays no
//! other count. The last known count is used.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::GroupResource;

/// Verbs that a kind must support to be counted, on any server (upstream's `GetQuotableResources`).
pub const COUNTABLE_VERBS: [&str; 4] = ["create", "list", "watch", "delete"];

/// Collections of aggregated APIs that are counted concurrently.
///
/// Limit (Admission and quota): further ones wait.
const WORKERS: usize = 4;
/// Interval between two requests about one collection while there are few collections.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Collections of aggregated APIs that are counted in one second.
///
/// Limit (Admission and quota): each is counted less often; the last count is used.
const MAX_PER_INTERVAL: usize = 16;

/// Access to other API servers by requests.
pub trait ForeignCountClient: Send + Sync {
    /// Returns true if another server serves a group.
    fn has_group(&self, group: &str) -> bool;

    /// Returns the number of objects of a resource in a namespace; `None` if no other server serves the resource.
    fn count<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
    ) -> BoxFuture<'a, Result<Option<u64>, String>>;
}

/// Returns the poll interval of each collection for this number of collections.
fn poll_interval(collections: usize) -> Duration {
    let times = collections.div_ceil(MAX_PER_INTERVAL).max(1);
    POLL_INTERVAL * u32::try_from(times).unwrap_or(u32::MAX)
}

/// Kind and namespace of objects to count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Collection {
    pub(super) namespace: String,
    pub(super) resource: GroupResource,
}

/// Counts of objects on other servers. Cheap to clone.
#[derive(Clone)]
pub(super) struct ForeignCounts {
    client: Arc<dyn ForeignCountClient>,
    queue: WorkQueue<Collection>,
    /// Polled collections, with the last count; `None` before the first response.
    counts: Arc<Mutex<HashMap<Collection, Option<u64>>>>,
}

impl ForeignCounts {
    pub(super) fn new(client: Arc<dyn ForeignCountClient>, metrics: &QueueMetrics) -> Self {
        let queue = WorkQueue::with_metrics(
            "resource_quota_controller_foreign_counts",
            BackoffPolicy::RECONNECT,
            metrics,
        );
        Self { client, queue, counts: Arc::default() }
    }

    /// Returns true if another server may have objects of a resource.
    pub(super) fn may_have(&self, resource: &GroupResource) -> bool {
        self.client.has_group(&resource.group)
    }

    /// Returns the last known number of objects, and starts polling the collection if it is new.
    pub(super) fn count(&self, collection: Collection) -> Option<u64> {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get(&collection) {
            return *count;
        }
        counts.insert(collection.clone(), None);
        self.queue.add(collection);
        None
    }

    /// Starts the polling workers, which run until `tasks` is cancelled. `is_wanted` returns true if a quota still counts a
    /// collection; `changed` is called for each collection whose count has changed.
    pub(super) fn run_workers(
        &self,
        tasks: &TaskSet,
        is_wanted: impl Fn(&Collection) -> bool + Send + Sync + 'static,
        changed: impl Fn(&Collection) + Send + Sync + 'static,
    ) {
        let (counts, is_wanted, changed) = (self.clone(), Arc::new(is_wanted), Arc::new(changed));
        run_workers(tasks, "resourcequota-foreign-counts", WORKERS, self.queue.clone(), move |collection| {
            let (counts, is_wanted, changed) = (counts.clone(), Arc::clone(&is_wanted), Arc::clone(&changed));
            async move {
                if !is_wanted(&collection) {
                    counts.counts.lock().remove(&collection);
                    return Ok(ReconcileOutcome::Done);
                }
                if counts.poll(&collection).await? {
                    changed(&collection);
                }
                let collection_count = counts.counts.lock().len();
                Ok::<_, String>(ReconcileOutcome::RequeueAfter(poll_interval(collection_count)))
            }
        });
    }

    /// Requests the count of a collection. Returns true if the count has changed.
    async fn poll(&self, collection: &Collection) -> Result<bool, String> {
        // A resource that is no longer served keeps its last count: the missing API does not mean that the objects are gone.
        let Some(count) = self.client.count(&collection.resource, &collection.namespace).await? else {
            return Ok(false);
        };
        let before = self.counts.lock().insert(collection.clone(), Some(count));
        Ok(before.flatten() != Some(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_rate_does_not_depend_on_the_number_of_collections() {
        for (collections, seconds) in [(0, 1), (1, 1), (16, 1), (17, 2), (1_600, 100)] {
            assert_eq!(poll_interval(collections), Duration::from_secs(seconds), "{collections}");
        }
    }
}
