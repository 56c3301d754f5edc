//! `endpoints-controller`: maintains the Endpoints of Services with selectors, and deletes those of deleted Services.

pub mod decide;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use portico_kit::backoff::Policy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, Reconciled, WorkQueue, run_workers};
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::{CreateOptions, DeleteOptions, ListOptions, Logged, Part, Registry, UpdateOptions};

use super::service::Service;
use super::slices::selected_pods;
use super::trigger_times::TriggerTimes;
use super::triggers::Subscriber;
use crate::account::{NamespacedName, account};
use crate::events::{EventRecorder, Events};
use crate::log::Listener;
use crate::outcome::{is_namespace_going, unless};
use decide::decide;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "endpoints-controller";
/// Service account of the controller.
const ACCOUNT: &str = "endpoint-controller";
/// Annotation of Endpoints that are used for leader election: they have no Service and are not deleted.
pub(super) const LEADER_ANNOTATION: &str = "control-plane.alpha.kubernetes.io/leader";

/// Settings of the controller.
#[derive(Clone, Copy, Debug)]
pub struct EndpointsSettings {
    /// `--concurrent-endpoint-syncs`
    pub workers: usize,
    /// `--endpoint-updates-batch-period`
    pub batch_period: Duration,
}

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct Endpoints {
    settings: EndpointsSettings,
    queue: WorkQueue<NamespacedName>,
    times: Arc<TriggerTimes>,
    recorder: EventRecorder,
}

impl Endpoints {
    /// Creates the controller.
    #[must_use]
    pub fn new(settings: EndpointsSettings, queues: &QueueMetrics, events: &Events) -> Self {
        let queue = WorkQueue::with_metrics("endpoint", Policy::CONTROLLER, queues);
        Self { settings, queue, times: Arc::default(), recorder: events.recorder(ACCOUNT, ACCOUNT) }
    }

    /// Returns the queue of Services, with its delay.
    #[must_use]
    pub fn subscriber(&self) -> Subscriber {
        Subscriber { queue: self.queue.clone(), batch_period: self.settings.batch_period }
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, registry) = (self.clone(), registry.clone());
        run_workers(tasks, NAME, self.settings.workers, self.queue.clone(), move |key| {
            let (worker, registry) = (worker.clone(), registry.clone());
            async move { worker.reconcile(&registry, &key).await }
        });
    }

    async fn reconcile(&self, registry: &Registry, key: &NamespacedName) -> Result<Reconciled, Box<Status>> {
        let Some(stored) = registry.get_stored(&key.of("", "services")).await? else {
            self.times.forget(key);
            let (context, options) = (account(ACCOUNT), DeleteOptions::default());
            let gone = registry.delete(&context, &endpoints(), &key.namespace, &key.name, &options).await;
            unless(gone, &[Reason::NotFound])?;
            return Ok(Reconciled::Done);
        };
        let service: Service = stored.read().map_err(Status::internal)?;
        if !service.selects_pods() {
            return Ok(Reconciled::Done);
        }
        let pods = selected_pods(registry, key, stored.object()).await?;
        let current = registry.get_stored(&key.of("", "endpoints")).await?;
        // Called even if nothing is written, because it updates its state.
        let time = self.times.next(key, &service, &pods);
        let current = current.as_ref().map(portico_registry::Stored::object);
        let Some(wanted) = decide(&service, &pods, current, time.as_deref()) else {
            return Ok(Reconciled::Done);
        };
        self.write(registry, key, wanted, current.is_some()).await?;
        Ok(Reconciled::Done)
    }

    async fn write(
        &self,
        registry: &Registry,
        key: &NamespacedName,
        wanted: Object,
        is_there: bool,
    ) -> Result<(), Box<Status>> {
        let (context, about, NamespacedName { namespace, name }) = (account(ACCOUNT), wanted.clone(), key);
        let (written, reason, what) = if is_there {
            let options = UpdateOptions::default();
            let written = registry.update(&context, &endpoints(), Part::Main, wanted, &options).await;
            (written, "FailedToUpdateEndpoint", "update endpoint")
        } else {
            let made = registry.create(&context, &endpoints(), wanted, &CreateOptions::default()).await;
            if made.as_ref().is_err_and(|status| is_namespace_going(status)) {
                return Ok(());
            }
            (made, "FailedToCreateEndpoint", "create endpoint for service")
        };
        if let Err(status) = &written {
            self.recorder.warn(&about, reason, format!("Failed to {what} {namespace}/{name}: {status}"));
        }
        written.map(drop)
    }
}

impl Listener for Endpoints {
    /// Enqueues Endpoints, whose Services may have been deleted while the controller did not run (`checkLeftoverEndpoints`).
    /// Services are enqueued by `triggers`.
    fn begin<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let all = registry.list(&endpoints(), "", &ListOptions::default()).await?.items;
            let left = all.iter().filter(|one| one.object().annotation(LEADER_ANNOTATION).is_none());
            left.for_each(|one| self.queue.add(NamespacedName::new(one.namespace(), one.name())));
            Ok(())
        })
    }

    fn on_event(&self, change: &Logged) {
        if change.is_gone() && *change.resource() == endpoints() {
            self.queue.add(NamespacedName::new(change.namespace(), change.name()));
        }
    }
}

pub(super) fn endpoints() -> GroupResource {
    GroupResource::new("", "endpoints")
}
