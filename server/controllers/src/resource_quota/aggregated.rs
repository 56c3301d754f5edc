//! Polls aggregated API servers for counts of the objects that quotas limit, in tasks of its own: a server that is away delays
//! no other count. The last known number counts.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use portico_kit::backoff::Policy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, Reconciled, WorkQueue, run_workers};
use portico_machinery::GroupResource;

/// The verbs that a kind must offer to be counted, wherever its objects are (upstream's `GetQuotableResources`).
pub const COUNTABLE_VERBS: [&str; 4] = ["create", "list", "watch", "delete"];

/// Collections of aggregated APIs that are counted concurrently.
///
/// Limit (Admission and quota): further ones wait.
const WORKERS: usize = 4;
/// Between two questions about one collection, as long as there are few.
const PERIOD: Duration = Duration::from_secs(1);
/// Collections of aggregated APIs that are counted in one second.
///
/// Limit (Admission and quota): each is counted less often; the last count is used.
const MAX_A_PERIOD: usize = 16;

/// Other API servers, asked live.
pub trait OtherServers: Send + Sync {
    /// Whether another server has a group.
    fn has_group(&self, group: &str) -> bool;

    /// How many objects of a resource are in a namespace; nothing when no other server has the resource.
    fn count<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
    ) -> BoxFuture<'a, Result<Option<u64>, String>>;
}

/// How long a collection rests when so many are asked for.
fn period(collections: usize) -> Duration {
    let times = collections.div_ceil(MAX_A_PERIOD).max(1);
    PERIOD * u32::try_from(times).unwrap_or(u32::MAX)
}

/// Objects of a kind in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Collection {
    pub(super) namespace: String,
    pub(super) resource: GroupResource,
}

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(super) struct ForeignCounts {
    others: Arc<dyn OtherServers>,
    queue: WorkQueue<Collection>,
    /// What is asked for, with the last answer.
    known: Arc<Mutex<HashMap<Collection, Option<u64>>>>,
}

impl ForeignCounts {
    pub(super) fn new(others: Arc<dyn OtherServers>, metrics: &QueueMetrics) -> Self {
        let queue =
            WorkQueue::with_metrics("resource_quota_controller_foreign_counts", Policy::RECONNECT, metrics);
        Self { others, queue, known: Arc::default() }
    }

    /// Whether another server may have objects of a resource.
    pub(super) fn may_have(&self, resource: &GroupResource) -> bool {
        self.others.has_group(&resource.group)
    }

    /// How many objects there are, as far as known. What is not known yet is asked for.
    pub(super) fn count(&self, collection: Collection) -> Option<u64> {
        let mut known = self.known.lock();
        if let Some(count) = known.get(&collection) {
            return *count;
        }
        known.insert(collection.clone(), None);
        self.queue.add(collection);
        None
    }

    /// Starts those who ask, until `tasks` is cancelled. `is_wanted` says whether a quota still counts a collection,
    /// `changed` is called with each whose number is another one.
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
                    counts.known.lock().remove(&collection);
                    return Ok(Reconciled::Done);
                }
                if counts.ask(&collection).await? {
                    changed(&collection);
                }
                let known = counts.known.lock().len();
                Ok::<_, String>(Reconciled::Again(period(known)))
            }
        });
    }

    /// Asks for a number; whether it is another one.
    async fn ask(&self, collection: &Collection) -> Result<bool, String> {
        // What nobody serves any more keeps its number: it says nothing of what was there.
        let Some(count) = self.others.count(&collection.resource, &collection.namespace).await? else {
            return Ok(false);
        };
        let before = self.known.lock().insert(collection.clone(), Some(count));
        Ok(before.flatten() != Some(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_collections_there_are_other_servers_are_asked_no_oftener() {
        for (collections, seconds) in [(0, 1), (1, 1), (16, 1), (17, 2), (1_600, 100)] {
            assert_eq!(period(collections), Duration::from_secs(seconds), "{collections}");
        }
    }
}
