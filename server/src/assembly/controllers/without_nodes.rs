//! Controllers of Services, disruption budgets, finished Jobs, claims and volumes. They depend only on statuses of pods, Jobs and
//! volumes that other components write.

use std::sync::Arc;

use portico_controllers::disruption::{self, Disruption};
use portico_controllers::events::Events;
use portico_controllers::log::Listener;
use portico_controllers::service_endpoints::endpoints::{self, Endpoints};
use portico_controllers::service_endpoints::mirroring::{self, Mirroring};
use portico_controllers::service_endpoints::slices::{self, EndpointSlices};
use portico_controllers::service_endpoints::triggers::ServiceTriggers;
use portico_controllers::ttl_after_finished::{self, TtlAfterFinished};
use portico_controllers::volume_protection::{self, VolumeProtection};
use portico_kit::metrics;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::QueueMetrics;
use portico_registry::Registry;

use super::selection::is_enabled;
use crate::settings::ServerSettings;

/// Starts the enabled controllers, which end with `tasks`.
pub(super) fn start(
    settings: &ServerSettings,
    registry: &Registry,
    queues: &QueueMetrics,
    metrics: &metrics::Registry,
    tasks: &TaskSet,
) -> Vec<Arc<dyn Listener>> {
    let events = Events::start(registry, tasks);
    let mut listeners = start_service_controllers(settings, registry, (queues, metrics, &events), tasks);
    let is_wanted = |name: &str| is_enabled(settings, registry, name);
    if is_wanted(disruption::NAME) {
        let budgets = Disruption::new(queues, &events);
        budgets.run_workers(registry, tasks);
        listeners.push(Arc::new(budgets));
    }
    if is_wanted(ttl_after_finished::NAME) {
        let workers = settings.controller_settings.ttl_workers;
        let jobs = TtlAfterFinished::new(workers, queues, metrics);
        jobs.run_workers(registry, tasks);
        listeners.push(Arc::new(jobs));
    }
    if is_wanted(volume_protection::CLAIMS) {
        let claims = VolumeProtection::of_claims(queues);
        claims.run_workers(registry, tasks);
        listeners.push(Arc::new(claims));
    }
    if is_wanted(volume_protection::VOLUMES) {
        let volumes = VolumeProtection::of_volumes(queues);
        volumes.run_workers(registry, tasks);
        listeners.push(Arc::new(volumes));
    }
    listeners
}

/// Starts the controllers of endpoints. Two of them are triggered by the same changes of Services and pods.
fn start_service_controllers(
    settings: &ServerSettings,
    registry: &Registry,
    (queues, metrics, events): (&QueueMetrics, &metrics::Registry, &Events),
    tasks: &TaskSet,
) -> Vec<Arc<dyn Listener>> {
    let (controller_settings, mut listeners) =
        (&settings.controller_settings, Vec::<Arc<dyn Listener>>::new());
    let is_wanted = |name: &str| is_enabled(settings, registry, name);
    let mut subscribers = Vec::new();
    if is_wanted(endpoints::NAME) {
        let endpoints = Endpoints::new(controller_settings.endpoints, queues, events);
        endpoints.run_workers(registry, tasks);
        subscribers.push(endpoints.subscriber());
        listeners.push(Arc::new(endpoints));
    }
    if is_wanted(slices::NAME) {
        let slices = EndpointSlices::new(controller_settings.slices, queues, metrics, events);
        slices.run_workers(registry, tasks);
        subscribers.push(slices.subscriber());
        listeners.push(Arc::new(slices));
    }
    if !subscribers.is_empty() {
        listeners.push(Arc::new(ServiceTriggers::new(subscribers)));
    }
    if is_wanted(mirroring::NAME) {
        let mirroring = Mirroring::new(controller_settings.mirroring, queues, metrics, events);
        mirroring.run_workers(registry, tasks);
        listeners.push(Arc::new(mirroring));
    }
    listeners
}
