//! Coordinated leader election (`leader-election-controller`): elects one of the LeaseCandidates of a lease and writes it as
//! holder into the Lease.
//!
//! Candidates are pinged (`pingTime`), respond by renewing, and the best of those that respond wins.

mod candidate;
mod candidate_cleaner;
mod decision;
mod names;

use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::{Object, Status, time};
use portico_registry::{
    Context, CreateOptions, ListOptions, LogEntry, ObjectPart, Registry, StoredObject, UpdateOptions,
};
use tokio::sync::watch;

use crate::account::NamespacedName;
use crate::leader_lease::{LeaderLease, LeadershipTimers};
use crate::log::Listener;
use candidate::Candidate;
use decision::{ElectionResult, ElectionStep};
pub use names::NAME;
use names::{USER, candidates, leases};

/// Interval after which a lease is reconciled again without a change (`defaultRequeueInterval`).
const REQUEUE_INTERVAL: Duration = Duration::from_secs(5);

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct LeaderElection {
    queue: WorkQueue<NamespacedName>,
    is_leader: watch::Sender<bool>,
    timers: LeadershipTimers,
    identity: String,
}

impl LeaderElection {
    /// Creates the controller. `identity` is unique to this start of the server.
    #[must_use]
    pub fn new(identity: String, timers: LeadershipTimers, metrics: &QueueMetrics) -> Self {
        let queue = WorkQueue::with_metrics(NAME, BackoffPolicy::CONTROLLER, metrics);
        Self { queue, is_leader: watch::Sender::new(false), timers, identity }
    }

    /// Starts the election of the server that holds elections, and the workers that hold them, until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let lock = LeaderLease::new(NAME, USER, self.identity.clone(), self.timers);
        tasks.spawn(NAME, lock.run(registry.clone(), self.is_leader.clone(), tasks.clone()));
        let sweep = candidate_cleaner::run(registry.clone(), self.is_leader.subscribe(), tasks.clone());
        tasks.spawn("lease-candidate-gc", sweep);
        let (controller, leads, cancelled) = (self.clone(), self.is_leader.subscribe(), tasks.clone());
        let of_begin = registry.clone();
        tasks.spawn("leader-election-begin", async move {
            cancelled.token().run_until_cancelled(controller.enqueue_when_leading(&of_begin, leads)).await;
        });
        let (worker, registry) = (self.clone(), registry.clone());
        run_workers(tasks, NAME, 1, self.queue.clone(), move |key| {
            let (worker, registry) = (worker.clone(), registry.clone());
            async move { worker.reconcile(&registry, &key).await }
        });
    }

    /// Enqueues all leases when this server becomes the leader: earlier changes were handled by the previous leader.
    async fn enqueue_when_leading(&self, registry: &Registry, mut leads: watch::Receiver<bool>) {
        while leads.wait_for(|leads| *leads).await.is_ok() {
            let resynced = self.resync(registry).await;
            let _logged = resynced
                .inspect_err(|status| tracing::warn!(error = %status, "cannot list lease candidates"));
            if leads.wait_for(|leads| !*leads).await.is_err() {
                return;
            }
        }
    }

    async fn reconcile(
        &self,
        registry: &Registry,
        key: &NamespacedName,
    ) -> Result<ReconcileOutcome, Box<Status>> {
        if !*self.is_leader.borrow() {
            return Ok(ReconcileOutcome::Done);
        }
        let now = Timestamp::now();
        let all = registry.list(&candidates(), &key.namespace, &ListOptions::default()).await?.items;
        let stands = |one: &&StoredObject| one.object().at(&["spec", "leaseName"]).str() == key.name;
        let all: Vec<&StoredObject> = all.iter().filter(stands).collect();
        let able: Vec<_> = all.iter().filter_map(|one| Candidate::parse_valid(one.object(), now)).collect();
        let lease = registry.get_stored(&key.object_ref("coordination.k8s.io", "leases")).await?;
        let lease = lease.as_ref().map(StoredObject::object);
        match decision::step(&able, lease, now) {
            Ok(ElectionStep::Idle) => Ok(ReconcileOutcome::Done),
            Ok(ElectionStep::Wait) => Ok(ReconcileOutcome::RequeueAfter(REQUEUE_INTERVAL)),
            Ok(ElectionStep::Ping(names)) => {
                let pinged = all.iter().filter(|one| names.iter().any(|name| name == one.name()));
                for candidate in pinged {
                    ping(registry, candidate.object(), now).await?;
                }
                Ok(ReconcileOutcome::RequeueAfter(REQUEUE_INTERVAL))
            }
            Ok(ElectionStep::Elect(result)) => {
                write_lease(registry, key, lease, &result, now).await?;
                Ok(ReconcileOutcome::RequeueAfter(REQUEUE_INTERVAL))
            }
            Err(failure) => {
                tracing::warn!(
                    lease = %key.name,
                    namespace = %key.namespace,
                    error = %failure.reason,
                    "leader election failed"
                );
                Ok(if failure.is_retryable {
                    ReconcileOutcome::RequeueAfter(REQUEUE_INTERVAL)
                } else {
                    ReconcileOutcome::Done
                })
            }
        }
    }
}

impl Listener for LeaderElection {
    fn resync<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let all = registry.list(&candidates(), "", &ListOptions::default()).await?.items;
            all.iter().for_each(|one| self.enqueue_lease_of(one.object()));
            Ok(())
        })
    }

    fn on_event(&self, change: &LogEntry) {
        if *change.resource() == candidates() {
            self.enqueue_lease_of(change.stored().object());
        } else if *change.resource() == leases() {
            self.queue.add(NamespacedName::new(change.namespace(), change.name()));
        }
    }
}

impl LeaderElection {
    /// Enqueues the lease of a candidate, unless the candidate has a pending ping: its election is in progress.
    fn enqueue_lease_of(&self, object: &Object) {
        if !candidate::is_pending(object) {
            let lease = object.at(&["spec", "leaseName"]).str();
            self.queue.add(NamespacedName::new(object.namespace(), lease));
        }
    }
}

async fn ping(registry: &Registry, candidate: &Object, now: Timestamp) -> Result<(), Box<Status>> {
    let mut candidate = candidate.clone();
    candidate.set(&["spec", "pingTime"], time::rfc3339_micro(now));
    let (context, options) = (Context::system(USER), UpdateOptions::default());
    registry.update(&context, &candidates(), ObjectPart::Main, candidate, &options).await.map(drop)
}

async fn write_lease(
    registry: &Registry,
    key: &NamespacedName,
    lease: Option<&Object>,
    elected: &ElectionResult,
    now: Timestamp,
) -> Result<(), Box<Status>> {
    let context = Context::system(USER);
    let Some(lease) = lease else {
        let lease = decision::new_lease(&key.namespace, &key.name, elected, now);
        tracing::info!(
            lease = %key.name,
            namespace = %key.namespace,
            holder = elected.holder,
            "lease created"
        );
        return registry.create(&context, &leases(), lease, &CreateOptions::default()).await.map(drop);
    };
    let Some(lease) = decision::updated_lease(lease, elected, now) else { return Ok(()) };
    tracing::info!(lease = %key.name, namespace = %key.namespace, holder = elected.holder, "lease changed");
    registry.update(&context, &leases(), ObjectPart::Main, lease, &UpdateOptions::default()).await.map(drop)
}
