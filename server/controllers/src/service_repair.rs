//! Repairs allocated addresses and ports of Services (hook `start-service-ip-repair-controllers`).
//!
//! The write of a Service allocates its addresses and ports in the same transaction, so a crash leaks nothing. Repairs are
//! needed after actions of other clients: an IPAddress that is deleted or edited, or a database that was edited manually. Rules,
//! messages and grace periods are upstream's, so that the repair can run concurrently with that of another API server.

mod addresses;
pub mod decision;
mod ports;
mod resources;

use std::ops::RangeInclusive;

use futures::future::BoxFuture;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::lifecycle::Signal;
use portico_kit::metrics;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::Status;
use portico_registry::{ListOptions, LogEntry, ObjectRef, Registry};

use crate::log::Listener;
use addresses::AddressRepair;
use ports::PortRepair;
use resources::{addresses, services};

/// Item of the work queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum RepairItem {
    /// Everything: at the start and after missed changes.
    All,
    /// Addresses of a Service.
    Service(ObjectRef),
    /// An IPAddress, by name.
    Address(String),
    /// All node ports, at intervals.
    Ports,
}

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct ServiceRepair {
    addresses: AddressRepair,
    ports: PortRepair,
    queue: WorkQueue<RepairItem>,
    checked: Signal,
}

impl ServiceRepair {
    /// Creates the controller. Its events contain this host name.
    #[must_use]
    pub fn new(
        registry: &Registry,
        node_ports: RangeInclusive<u16>,
        hostname: &str,
        queues: &QueueMetrics,
        metrics: &metrics::Registry,
    ) -> Self {
        Self {
            addresses: AddressRepair::new(registry, hostname),
            ports: PortRepair::new(registry, node_ports, hostname, metrics),
            queue: WorkQueue::with_metrics("service_repair", BackoffPolicy::CONTROLLER, queues),
            checked: Signal::new("ServicesChecked"),
        }
    }

    /// Returns a signal that is set after the first complete check.
    #[must_use]
    pub fn checked(&self) -> Signal {
        self.checked.clone()
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, registry) = (self.clone(), registry.clone());
        run_workers(tasks, "service-ip-repair", 1, self.queue.clone(), move |item| {
            let (worker, registry) = (worker.clone(), registry.clone());
            async move { worker.reconcile(&registry, item).await }
        });
    }

    async fn reconcile(
        &self,
        registry: &Registry,
        item: RepairItem,
    ) -> Result<ReconcileOutcome, Box<Status>> {
        match item {
            RepairItem::All => self.check_all(registry).await.map(|()| ReconcileOutcome::Done),
            RepairItem::Service(service) => {
                self.addresses.check_service(&service).await.map(|()| ReconcileOutcome::Done)
            }
            RepairItem::Address(name) => self.addresses.check_address(&name).await,
            RepairItem::Ports => self.ports.check().await.map(ReconcileOutcome::RequeueAfter),
        }
    }

    /// Checks Services first, because their addresses take precedence over IPAddresses.
    async fn check_all(&self, registry: &Registry) -> Result<(), Box<Status>> {
        for service in registry.list(&services(), "", &ListOptions::default()).await?.items {
            let (namespace, name) = (service.namespace().to_owned(), service.name().to_owned());
            self.addresses.check_service(&ObjectRef { resource: services(), namespace, name }).await?;
        }
        for address in registry.list(&addresses(), "", &ListOptions::default()).await?.items {
            self.queue.add(RepairItem::Address(address.name().to_owned()));
        }
        self.queue.add_after(RepairItem::Ports, self.ports.check().await?);
        self.checked.signal();
        Ok(())
    }
}

impl Listener for ServiceRepair {
    fn resync<'a>(&'a self, _registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        self.queue.add(RepairItem::All);
        Box::pin(async { Ok(()) })
    }

    fn on_event(&self, change: &LogEntry) {
        match (change.resource().group.as_str(), change.resource().resource.as_str()) {
            ("", "services") if !change.is_deleted() => self.queue.add(RepairItem::Service(change.object())),
            ("networking.k8s.io", "ipaddresses") if change.is_deleted() => {
                // Recreated for its Service.
                let parent = change.stored();
                let parent = parent.object().at(&["spec", "parentRef"]);
                let (namespace, name) =
                    (parent.field("namespace").str().to_owned(), parent.field("name").str().to_owned());
                self.queue.add(RepairItem::Service(ObjectRef { resource: services(), namespace, name }));
            }
            ("networking.k8s.io", "ipaddresses") => {
                self.queue.add(RepairItem::Address(change.name().to_owned()));
            }
            _ => {}
        }
    }
}
