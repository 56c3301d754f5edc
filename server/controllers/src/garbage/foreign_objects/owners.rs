//! Owners on other API servers, looked up one by one through a separate queue. The result of the last lookup decides about
//! their dependents.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::Status;
use portico_registry::Registry;

use super::super::decision::OwnerState;
use super::{ForeignObjectClient, ForeignOwner};

/// Number of concurrent lookups.
const WORKERS: usize = 2;
/// Interval between lookups of an owner while it has dependents.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(30);
/// Delay before the next lookup of an owner whose state is unknown.
const UNKNOWN_DELAY: Duration = Duration::from_secs(120);

/// States of owners on other servers. Cheap to clone. The size is bounded by the number of such owners that existing objects
/// refer to.
#[derive(Clone)]
pub(crate) struct ForeignOwners {
    client: Arc<dyn ForeignObjectClient>,
    queue: WorkQueue<ForeignOwner>,
    states: Arc<Mutex<HashMap<ForeignOwner, OwnerState>>>,
}

impl ForeignOwners {
    pub(crate) fn new(client: Arc<dyn ForeignObjectClient>, metrics: &QueueMetrics) -> Self {
        let queue =
            WorkQueue::with_metrics("garbage_collector_foreign_owners", BackoffPolicy::CONTROLLER, metrics);
        Self { client, queue, states: Arc::default() }
    }

    /// Returns the last known state of an owner, and enqueues a lookup if there is none.
    pub(crate) fn state(&self, owner: ForeignOwner) -> OwnerState {
        if let Some(state) = self.states.lock().get(&owner) {
            return *state;
        }
        self.queue.add(owner);
        OwnerState::Unknown
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
            async move { owners.look_up(&registry, owner, changed).await }
        });
    }

    async fn look_up(
        &self,
        registry: &Registry,
        owner: ForeignOwner,
        changed: impl Fn(String),
    ) -> Result<ReconcileOutcome, Box<Status>> {
        if registry.dependents(&owner.uid).await?.is_empty() {
            self.states.lock().remove(&owner);
            return Ok(ReconcileOutcome::Done);
        }
        if registry.resolve(&owner.kind).is_some_and(|local| local.has_version) {
            // Served by this server in the meantime.
            self.states.lock().remove(&owner);
            changed(owner.uid);
            return Ok(ReconcileOutcome::Done);
        }
        let state = self.client.owner(&owner).await;
        let previous = match state {
            OwnerState::Unknown => self.states.lock().remove(&owner),
            now => self.states.lock().insert(owner.clone(), now),
        };
        if state != OwnerState::Unknown && previous != Some(state) {
            changed(owner.uid);
        }
        Ok(ReconcileOutcome::RequeueAfter(if state == OwnerState::Unknown {
            UNKNOWN_DELAY
        } else {
            LOOKUP_INTERVAL
        }))
    }
}
