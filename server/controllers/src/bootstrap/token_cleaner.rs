//! Deletes bootstrap tokens that have expired (`token-cleaner-controller`).

use futures::future::BoxFuture;
use jiff::Timestamp;
use portico_kit::backoff::Policy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, Reconciled, WorkQueue, run_workers};
use portico_machinery::{Reason, Status};
use portico_registry::{DeleteOptions, ListOptions, Logged, ObjectRef, Preconditions, Registry, Stored};

use super::token::{Left, NAMESPACE, is_token, left, secrets};
use crate::account::account;
use crate::log::Listener;
use crate::outcome::unless;

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
        Self { queue: WorkQueue::with_metrics("token_cleaner", Policy::CONTROLLER, metrics) }
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

async fn reconcile(registry: &Registry, name: String) -> Result<Reconciled, Box<Status>> {
    let at = ObjectRef { resource: secrets(), namespace: NAMESPACE.to_owned(), name };
    let Some(secret) = registry.get_stored(&at).await?.filter(|secret| is_token(secret.object())) else {
        return Ok(Reconciled::Done);
    };
    match left(secret.object(), Timestamp::now()) {
        Left::Forever => Ok(Reconciled::Done),
        Left::For(time) => Ok(Reconciled::Again(time)),
        Left::Expired => delete(registry, &secret).await.map(|()| Reconciled::Done),
    }
}

async fn delete(registry: &Registry, secret: &Stored) -> Result<(), Box<Status>> {
    tracing::info!(secret = secret.name(), "deleting an expired bootstrap token");
    let preconditions = Preconditions { uid: Some(secret.uid().to_owned()), ..Preconditions::default() };
    let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
    let deleted = registry.delete(&account(USER), &secrets(), NAMESPACE, secret.name(), &options).await;
    unless(deleted, &[Reason::NotFound, Reason::Conflict])
}

impl Listener for TokenCleaner {
    fn begin<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let all = registry.list(&secrets(), NAMESPACE, &ListOptions::default()).await?;
            all.items.iter().for_each(|secret| self.queue.add(secret.name().to_owned()));
            Ok(())
        })
    }

    fn on_event(&self, change: &Logged) {
        if *change.resource() == secrets() && change.namespace() == NAMESPACE && !change.is_gone() {
            self.queue.add(change.name().to_owned());
        }
    }
}
