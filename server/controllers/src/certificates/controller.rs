//! Reconcile loop shared by the controllers of CertificateSigningRequests (upstream's `CertificateController`).

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::{Object, Status};
use portico_registry::{ListOptions, LogEntry, ObjectRef, Registry};

use super::request::{is_issued, resource};
use crate::log::Listener;

/// Number of workers of each of these controllers upstream.
const WORKERS: usize = 5;
/// Upstream's backoff after failures.
const RETRIES: BackoffPolicy =
    BackoffPolicy::new(Duration::from_millis(200), Duration::from_secs(1000), 2.0, 0.0);

/// Logic of a controller for requests without a certificate.
pub(super) trait Handler: Send + Sync {
    /// Returns the name of the controller in kube-controller-manager.
    fn name(&self) -> &'static str;

    /// Reconciles a request and writes the result.
    fn handle<'a>(
        &'a self,
        registry: &'a Registry,
        request: Object,
    ) -> BoxFuture<'a, Result<(), Box<Status>>>;
}

/// Controller that passes each changed request to a handler. Cheap to clone.
#[derive(Clone)]
pub struct RequestController {
    handler: Arc<dyn Handler>,
    queue: WorkQueue<String>,
}

impl RequestController {
    pub(super) fn new(handler: impl Handler + 'static, metrics: &QueueMetrics) -> Self {
        Self { handler: Arc::new(handler), queue: WorkQueue::with_metrics("certificate", RETRIES, metrics) }
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, registry) = (self.clone(), registry.clone());
        run_workers(tasks, self.handler.name(), WORKERS, self.queue.clone(), move |name| {
            let (worker, registry) = (worker.clone(), registry.clone());
            async move { worker.reconcile(&registry, name).await.map(|()| ReconcileOutcome::Done) }
        });
    }

    async fn reconcile(&self, registry: &Registry, name: String) -> Result<(), Box<Status>> {
        let object_ref = ObjectRef { resource: resource(), namespace: String::new(), name };
        let stored = registry.get_stored(&object_ref).await?;
        match stored.filter(|stored| !is_issued(stored.object())) {
            Some(stored) => self.handler.handle(registry, stored.object().clone()).await,
            None => Ok(()),
        }
    }
}

impl Listener for RequestController {
    fn resync<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let all = registry.list(&resource(), "", &ListOptions::default()).await?;
            all.items.iter().for_each(|request| self.queue.add(request.name().to_owned()));
            Ok(())
        })
    }

    fn on_event(&self, change: &LogEntry) {
        if *change.resource() == resource() && !change.is_deleted() {
            self.queue.add(change.name().to_owned());
        }
    }
}
