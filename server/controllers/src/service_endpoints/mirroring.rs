//! `endpointslice-mirroring-controller`: mirrors Endpoints that users create for Services without selectors.

pub mod decision;

use std::time::Duration;

use futures::future::BoxFuture;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::metrics::{self, Desc};
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::{Object, Status};
use portico_registry::{ListOptions, LogEntry, Registry, StoredObject};

use super::endpoints::endpoints;
use super::slice::{MANAGED_BY_LABEL, SERVICE_LABEL};
use super::slice_writer::{ChangeMetrics, SliceChanges, endpoint_slices, write_changes};
use super::slices::slices_of;
use super::triggers::services;
use crate::account::{NamespacedName, service_account_context};
use crate::events::{EventRecorder, Events};
use crate::log::Listener;
use decision::{MANAGER, decide, may_mirror};

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "endpointslice-mirroring-controller";
/// Service account of the controller.
const ACCOUNT: &str = "endpointslicemirroring-controller";
/// Component that the controller's events name as their source.
const COMPONENT: &str = "endpoint-slice-mirroring-controller";
/// Backoff after failures: 1 s, doubled each time, up to 100 s.
const RETRIES: BackoffPolicy = BackoffPolicy::new(Duration::from_secs(1), Duration::from_secs(100), 2.0, 0.0);

/// Settings of the controller.
#[derive(Clone, Copy, Debug)]
pub struct MirroringSettings {
    /// `--mirroring-concurrent-service-endpoint-syncs`
    pub workers: usize,
    /// `--mirroring-max-endpoints-per-subset`
    pub max_endpoints: usize,
    /// `--mirroring-endpointslice-updates-batch-period`
    pub batch_period: Duration,
}

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct Mirroring {
    settings: MirroringSettings,
    queue: WorkQueue<NamespacedName>,
    metrics: ChangeMetrics,
    recorder: EventRecorder,
}

impl Mirroring {
    /// Creates the controller.
    #[must_use]
    pub fn new(
        settings: MirroringSettings,
        queues: &QueueMetrics,
        metrics: &metrics::Registry,
        events: &Events,
    ) -> Self {
        Self {
            settings,
            queue: WorkQueue::with_metrics("endpoint_slice_mirroring", RETRIES, queues),
            metrics: ChangeMetrics::new(
                metrics,
                Desc::counter(
                    "endpoint_slice_mirroring_controller_changes",
                    &["operation"],
                    "[ALPHA] Number of EndpointSlice changes",
                ),
            ),
            recorder: events.recorder(COMPONENT, ACCOUNT),
        }
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
        let mirrored = registry.get_stored(&key.object_ref("", "endpoints")).await?;
        let service = registry.get_stored(&key.object_ref("", "services")).await?;
        let is_wanted = service.is_some_and(|service| !has_selector(&service));
        let existing = slices_of(registry, key, MANAGER).await?;
        let changes = match mirrored.filter(|endpoints| is_wanted && may_mirror(endpoints.object())) {
            Some(endpoints) => {
                let decision = decide(endpoints.object(), existing, self.settings.max_endpoints);
                self.warn_of_skipped(endpoints.object(), decision.invalid, decision.skipped);
                decision.changes
            }
            None => SliceChanges { delete: existing, ..SliceChanges::default() },
        };
        write_changes(registry, (&service_account_context(ACCOUNT), key), changes, &self.metrics).await?;
        Ok(ReconcileOutcome::Done)
    }

    fn warn_of_skipped(&self, endpoints: &Object, invalid: usize, skipped: usize) {
        if invalid > 0 {
            let message = format!("Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices");
            self.recorder.warn(endpoints, "InvalidIPAddress", message);
        }
        if skipped > invalid {
            let message = format!(
                "A max of {} addresses can be mirrored to EndpointSlices per Endpoints subset. {skipped} addresses were skipped",
                self.settings.max_endpoints
            );
            self.recorder.warn(endpoints, "TooManyAddressesToMirror", message);
        }
    }

    fn on_slice(&self, change: &LogEntry) {
        let (now, before) = (change.stored(), change.previous());
        for slice in before.iter().chain([&now]) {
            let label = |key: &str| slice.record().value.label(key);
            if let (Some(MANAGER), Some(service)) = (label(MANAGED_BY_LABEL), label(SERVICE_LABEL)) {
                let key = NamespacedName::new(change.namespace(), service);
                self.queue.add_after(key, self.settings.batch_period);
            }
        }
    }

    /// Enqueues a Service without a selector, or whose selector was added or removed.
    fn on_service(&self, change: &LogEntry) {
        let (selects, selected) =
            (has_selector(&change.stored()), change.previous().map(|b| has_selector(&b)));
        let is_relevant = match selected {
            Some(selected) if !change.is_deleted() => selected != selects,
            _ => !selects,
        };
        if is_relevant {
            self.queue.add(NamespacedName::new(change.namespace(), change.name()));
        }
    }
}

impl Listener for Mirroring {
    fn resync<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let all = registry.list(&endpoints(), "", &ListOptions::default()).await?.items;
            all.iter().for_each(|one| self.queue.add(NamespacedName::new(one.namespace(), one.name())));
            // Slices whose Endpoints may have been deleted while the controller did not run.
            let slices = registry.list(&endpoint_slices(), "", &ListOptions::default()).await?.items;
            for slice in &slices {
                let label = |key: &str| slice.record().value.label(key);
                if let (Some(MANAGER), Some(service)) = (label(MANAGED_BY_LABEL), label(SERVICE_LABEL)) {
                    self.queue.add(NamespacedName::new(slice.namespace(), service));
                }
            }
            Ok(())
        })
    }

    fn on_event(&self, change: &LogEntry) {
        let resource = change.resource();
        if *resource == endpoints() {
            self.queue.add(NamespacedName::new(change.namespace(), change.name()));
        } else if *resource == endpoint_slices() {
            self.on_slice(change);
        } else if *resource == services() {
            self.on_service(change);
        }
    }
}

fn has_selector(service: &StoredObject) -> bool {
    service.object().at(&["spec", "selector"]).is_present()
}
