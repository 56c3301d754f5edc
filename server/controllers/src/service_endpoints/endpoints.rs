//! `endpoints-controller`: maintains the Endpoints of Services with selectors, and deletes those of deleted Services.

pub mod decision;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::{
    CreateOptions, DeleteOptions, ListOptions, LogEntry, ObjectPart, Registry, UpdateOptions,
};

use super::service::Service;
use super::slices::selected_pods;
use super::trigger_times::TriggerTimes;
use super::triggers::Subscriber;
use crate::account::{NamespacedName, service_account_context};
use crate::events::{EventRecorder, Events};
use crate::log::Listener;
use crate::write_result::{ignore_reasons, is_namespace_terminating};
use decision::decide;

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
        let queue = WorkQueue::with_metrics("endpoint", BackoffPolicy::CONTROLLER, queues);
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

    async fn reconcile(
        &self,
        registry: &Registry,
        key: &NamespacedName,
    ) -> Result<ReconcileOutcome, Box<Status>> {
        let Some(stored) = registry.get_stored(&key.object_ref("", "services")).await? else {
            self.times.forget(key);
            let (context, options) = (service_account_context(ACCOUNT), DeleteOptions::default());
            let deleted = registry.delete(&context, &endpoints(), &key.namespace, &key.name, &options).await;
            ignore_reasons(deleted, &[Reason::NotFound])?;
            return Ok(ReconcileOutcome::Done);
        };
        let service: Service = stored.read().map_err(Status::internal)?;
        if !service.selects_pods() {
            return Ok(ReconcileOutcome::Done);
        }
        let pods = selected_pods(registry, key, stored.object()).await?;
        let current = registry.get_stored(&key.object_ref("", "endpoints")).await?;
        // Called even if nothing is written, because it updates its state.
        let time = self.times.update(key, &service, &pods);
        let current = current.as_ref().map(portico_registry::StoredObject::object);
        let Some(desired) = decide(&service, &pods, current, time.as_deref()) else {
            return Ok(ReconcileOutcome::Done);
        };
        self.write(registry, key, desired, current.is_some()).await?;
        Ok(ReconcileOutcome::Done)
    }

    async fn write(
        &self,
        registry: &Registry,
        key: &NamespacedName,
        desired: Object,
        exists: bool,
    ) -> Result<(), Box<Status>> {
        let (context, event_object, NamespacedName { namespace, name }) =
            (service_account_context(ACCOUNT), desired.clone(), key);
        let (written, reason, action) = if exists {
            let options = UpdateOptions::default();
            let written = registry.update(&context, &endpoints(), ObjectPart::Main, desired, &options).await;
            (written, "FailedToUpdateEndpoint", "update endpoint")
        } else {
            let created = registry.create(&context, &endpoints(), desired, &CreateOptions::default()).await;
            if created.as_ref().is_err_and(|status| is_namespace_terminating(status)) {
                return Ok(());
            }
            (created, "FailedToCreateEndpoint", "create endpoint for service")
        };
        if let Err(status) = &written {
            self.recorder.warn(
                &event_object,
                reason,
                format!("Failed to {action} {namespace}/{name}: {status}"),
            );
        }
        written.map(drop)
    }
}

impl Listener for Endpoints {
    /// Enqueues Endpoints, whose Services may have been deleted while the controller did not run (`checkLeftoverEndpoints`).
    /// Services are enqueued by `triggers`.
    fn resync<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let all = registry.list(&endpoints(), "", &ListOptions::default()).await?.items;
            let managed = all.iter().filter(|one| one.object().annotation(LEADER_ANNOTATION).is_none());
            managed.for_each(|one| self.queue.add(NamespacedName::new(one.namespace(), one.name())));
            Ok(())
        })
    }

    fn on_event(&self, change: &LogEntry) {
        if change.is_deleted() && *change.resource() == endpoints() {
            self.queue.add(NamespacedName::new(change.namespace(), change.name()));
        }
    }
}

pub(super) fn endpoints() -> GroupResource {
    GroupResource::new("", "endpoints")
}
