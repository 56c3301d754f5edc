//! Owners on other API servers, looked up one by one through a separate queue. The result of the last lookup decides about
//! their dependents.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use portico_kit::backoff::Policy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, Reconciled, WorkQueue, run_workers};
use portico_machinery::Status;
use portico_registry::Registry;

use super::super::decide::Owner;
use super::{ForeignOwner, OtherServers};

/// Number of concurrent lookups.
const WORKERS: usize = 2;
/// Interval between lookups of an owner while it has dependents.
const PERIOD: Duration = Duration::from_secs(30);
/// Delay before the next lookup of an owner whose state is unknown.
const LATER: Duration = Duration::from_secs(120);

/// States of owners on other servers. Cheap to clone. The size is bounded by the number of such owners that existing objects
/// refer to.
#[derive(Clone)]
pub(crate) struct ForeignOwners {
    others: Arc<dyn OtherServers>,
    queue: WorkQueue<ForeignOwner>,
    known: Arc<Mutex<HashMap<ForeignOwner, Owner>>>,
}

impl ForeignOwners {
    pub(crate) fn new(others: Arc<dyn OtherServers>, metrics: &QueueMetrics) -> Self {
        let queue = WorkQueue::with_metrics("garbage_collector_foreign_owners", Policy::CONTROLLER, metrics);
        Self { others, queue, known: Arc::default() }
    }

    /// Returns the last known state of an owner, and enqueues a lookup if there is none.
    pub(crate) fn look(&self, owner: ForeignOwner) -> Owner {
        if let Some(known) = self.known.lock().get(&owner) {
            return *known;
        }
        self.queue.add(owner);
        Owner::Unknown
    }

    /// Starts the lookups, which run until `tasks` is cancelled. `changed` receives the UIDs of owners whose dependents need a
    /// new check.
    pub(crate) fn run_workers(
        &self,
        registry: &Registry,
        tasks: &TaskSet,
        changed: impl Fn(String) + Clone + Send + Sync + 'static,
    ) {
        let (owners, registry) = (self.clone(), registry.clone());
        run_workers(tasks, "garbage-collector-owners", WORKERS, self.queue.clone(), move |owner| {
            let (owners, registry, changed) = (owners.clone(), registry.clone(), changed.clone());
            async move { owners.ask(&registry, owner, changed).await }
        });
    }

    async fn ask(
        &self,
        registry: &Registry,
        owner: ForeignOwner,
        changed: impl Fn(String),
    ) -> Result<Reconciled, Box<Status>> {
        if registry.dependents(&owner.uid).await?.is_empty() {
            self.known.lock().remove(&owner);
            return Ok(Reconciled::Done);
        }
        if registry.resolve(&owner.kind).is_some_and(|ours| ours.is_named) {
            // Served by this server in the meantime.
            self.known.lock().remove(&owner);
            changed(owner.uid);
            return Ok(Reconciled::Done);
        }
        let now = self.others.owner(&owner).await;
        let before = match now {
            Owner::Unknown => self.known.lock().remove(&owner),
            now => self.known.lock().insert(owner.clone(), now),
        };
        if now != Owner::Unknown && before != Some(now) {
            changed(owner.uid);
        }
        Ok(Reconciled::Again(if now == Owner::Unknown { LATER } else { PERIOD }))
    }
}
