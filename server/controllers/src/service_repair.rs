//! Keeps what Services have been given in step with what is put down as given (hook `start-service-ip-repair-controllers`).
//!
//! A Service's write takes its addresses and ports along in its transaction, so nothing leaks by a crash. What is repaired is
//! what others do: an IPAddress that somebody deletes or edits, a database that was put together by hand. Upstream's rules,
//! texts and graces, so that it is harmless beside another API server's repair.

mod addresses;
pub mod decide;
mod ports;
mod resources;

use std::ops::RangeInclusive;

use futures::future::BoxFuture;
use portico_kit::backoff::Policy;
use portico_kit::lifecycle::Signal;
use portico_kit::metrics;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, Reconciled, WorkQueue, run_workers};
use portico_machinery::Status;
use portico_registry::{ListOptions, Logged, ObjectRef, Registry};

use crate::log::Listener;
use addresses::Addresses;
use ports::Ports;
use resources::{addresses, services};

/// What there is to check.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Item {
    /// Everything: once, and again whenever something was missed.
    All,
    /// A Service's addresses.
    Service(ObjectRef),
    /// An IPAddress, by name.
    Address(String),
    /// All node ports, at intervals.
    Ports,
}

/// The controller. Cheap to clone.
#[derive(Clone)]
pub struct ServiceRepair {
    addresses: Addresses,
    ports: Ports,
    queue: WorkQueue<Item>,
    checked: Signal,
}

impl ServiceRepair {
    /// Has checked nothing yet. Events name this host.
    #[must_use]
    pub fn new(
        registry: &Registry,
        node_ports: RangeInclusive<u16>,
        hostname: &str,
        queues: &QueueMetrics,
        metrics: &metrics::Registry,
    ) -> Self {
        Self {
            addresses: Addresses::new(registry, hostname),
            ports: Ports::new(registry, node_ports, hostname, metrics),
            queue: WorkQueue::with_metrics("service_repair", Policy::CONTROLLER, queues),
            checked: Signal::new("ServicesChecked"),
        }
    }

    /// Given once everything has been checked for the first time.
    #[must_use]
    pub fn checked(&self) -> Signal {
        self.checked.clone()
    }

    /// Starts what repairs, until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, registry) = (self.clone(), registry.clone());
        run_workers(tasks, "service-ip-repair", 1, self.queue.clone(), move |item| {
            let (worker, registry) = (worker.clone(), registry.clone());
            async move { worker.reconcile(&registry, item).await }
        });
    }

    async fn reconcile(&self, registry: &Registry, item: Item) -> Result<Reconciled, Box<Status>> {
        match item {
            Item::All => self.check_all(registry).await.map(|()| Reconciled::Done),
            Item::Service(service) => self.addresses.of_service(&service).await.map(|()| Reconciled::Done),
            Item::Address(name) => self.addresses.address(&name).await,
            Item::Ports => self.ports.check().await.map(Reconciled::Again),
        }
    }

    /// Services first: what they have is right, whatever is put down.
    async fn check_all(&self, registry: &Registry) -> Result<(), Box<Status>> {
        for service in registry.list(&services(), "", &ListOptions::default()).await?.items {
            let (namespace, name) = (service.namespace().to_owned(), service.name().to_owned());
            self.addresses.of_service(&ObjectRef { resource: services(), namespace, name }).await?;
        }
        for address in registry.list(&addresses(), "", &ListOptions::default()).await?.items {
            self.queue.add(Item::Address(address.name().to_owned()));
        }
        self.queue.add_after(Item::Ports, self.ports.check().await?);
        self.checked.signal();
        Ok(())
    }
}

impl Listener for ServiceRepair {
    fn begin<'a>(&'a self, _registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        self.queue.add(Item::All);
        Box::pin(async { Ok(()) })
    }

    fn on_event(&self, change: &Logged) {
        match (change.resource().group.as_str(), change.resource().resource.as_str()) {
            ("", "services") if !change.is_gone() => self.queue.add(Item::Service(change.object())),
            ("networking.k8s.io", "ipaddresses") if change.is_gone() => {
                // The Service that had it gets it back.
                let parent = change.stored();
                let parent = parent.object().at(&["spec", "parentRef"]);
                let (namespace, name) =
                    (parent.field("namespace").str().to_owned(), parent.field("name").str().to_owned());
                self.queue.add(Item::Service(ObjectRef { resource: services(), namespace, name }));
            }
            ("networking.k8s.io", "ipaddresses") => {
                self.queue.add(Item::Address(change.name().to_owned()));
            }
            _ => {}
        }
    }
}
