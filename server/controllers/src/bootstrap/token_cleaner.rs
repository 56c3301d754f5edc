//! Deletes bootstrap tokens that have expired (`token-cleaner-controller`).

use futures::future::BoxFuture;
use jiff::Timestamp;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::{Reason, Status};
use portico_registry::{
    DeleteOptions, ListOptions, LogEntry, ObjectRef, Preconditions, Registry, StoredObject,
};

use super::token::{NAMESPACE, Validity, is_token, secrets, validity};
use crate::account::service_account_context;
use crate::log::Listener;
use crate::write_result::ignore_reasons;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "token-cleaner-controller";

const USER: &str = "token-cleaner";
const WORKERS: usize = 1;

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct TokenCleaner {
    /// Names of Secrets.
    queue: WorkQueue<String>,
}

impl TokenCleaner {
    /// Creates the controller.
    #[must_use]
    pub fn new(metrics: &QueueMetrics) -> Self {
        Self { queue: WorkQueue::with_metrics("token_cleaner", BackoffPolicy::CONTROLLER, metrics) }
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let registry = registry.clone();
        run_workers(tasks, NAME, WORKERS, self.queue.clone(), move |name| {
            let registry = registry.clone();
            async move { reconcile(&registry, name).await }
        });
    }
}

async fn reconcile(registry: &Registry, name: String) -> Result<ReconcileOutcome, Box<Status>> {
    let object_ref = ObjectRef { resource: secrets(), namespace: NAMESPACE.to_owned(), name };
    let Some(secret) = registry.get_stored(&object_ref).await?.filter(|secret| is_token(secret.object()))
    else {
        return Ok(ReconcileOutcome::Done);
    };
    match validity(secret.object(), Timestamp::now()) {
        Validity::Forever => Ok(ReconcileOutcome::Done),
        Validity::For(time) => Ok(ReconcileOutcome::RequeueAfter(time)),
        Validity::Expired => delete(registry, &secret).await.map(|()| ReconcileOutcome::Done),
    }
}

async fn delete(registry: &Registry, secret: &StoredObject) -> Result<(), Box<Status>> {
    tracing::info!(secret = secret.name(), "deleting an expired bootstrap token");
    let preconditions = Preconditions { uid: Some(secret.uid().to_owned()), ..Preconditions::default() };
    let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
    let deleted =
        registry.delete(&service_account_context(USER), &secrets(), NAMESPACE, secret.name(), &options).await;
    ignore_reasons(deleted, &[Reason::NotFound, Reason::Conflict])
}

impl Listener for TokenCleaner {
    fn resync<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let all = registry.list(&secrets(), NAMESPACE, &ListOptions::default()).await?;
            all.items.iter().for_each(|secret| self.queue.add(secret.name().to_owned()));
            Ok(())
        })
    }

    fn on_event(&self, change: &LogEntry) {
        if *change.resource() == secrets() && change.namespace() == NAMESPACE && !change.is_deleted() {
            self.queue.add(change.name().to_owned());
        }
    }
}
