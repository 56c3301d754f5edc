//! Repairs node ports: each port of a Service is allocated to it, and ports without a Service are free.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use portico_kit::metrics::{self, Desc};
use portico_machinery::{Object, Status};
use portico_registry::{ListOptions, ObjectRef, Registry, Stored};
use portico_resources::{HeldPort, NodePorts};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::resources::services;
use crate::recorder::{Recorder, Warning};

/// Upstream's interval.
const PERIOD: Duration = Duration::from_secs(180);

/// Repair of node ports.
#[derive(Clone)]
pub(super) struct Ports {
    registry: Registry,
    in_use: NodePorts,
    range: RangeInclusive<u16>,
    recorder: Recorder,
    found: Family<[(&'static str, &'static str); 1], Counter>,
    failed: Counter,
}

impl Ports {
    pub(super) fn new(
        registry: &Registry,
        range: RangeInclusive<u16>,
        hostname: &str,
        metrics: &metrics::Registry,
    ) -> Self {
        let found = metrics.counter_vec(Desc::counter(
            "apiserver_nodeport_repair_port_errors_total",
            &["type"],
            "[ALPHA] Number of errors detected on ports by the repair loop broken down by \
             type of error: leak, repair, full, outOfRange, duplicate, unknown",
        ));
        let failed = metrics.counter(Desc::counter(
            "apiserver_nodeport_repair_reconcile_errors_total",
            &[],
            "[ALPHA] Number of reconciliation failures on the nodeport repair reconcile \
             loop",
        ));
        let recorder = Recorder::new(registry.clone(), "portallocator-repair-controller", hostname);
        let in_use = NodePorts::new(registry.clone());
        Self { registry: registry.clone(), in_use, range, recorder, found, failed }
    }

    /// Checks all node ports; returns the delay before the next check.
    pub(super) async fn check(&self) -> Result<Duration, Box<Status>> {
        let checked = self.check_all().await;
        if checked.is_err() {
            self.failed.inc();
        }
        checked.map(|()| PERIOD)
    }

    async fn check_all(&self) -> Result<(), Box<Status>> {
        // Allocations are read before Services: a port allocated in between then belongs to a Service and is no leak.
        let mut held: HashMap<u16, HeldPort> = HashMap::new();
        for port in self.in_use.all().await? {
            if self.has(&port).await? {
                held.insert(port.port, port);
            } else if self.in_use.release(&port).await? {
                tracing::warn!(port = port.port, "leaked node port released");
                self.count("leak");
            }
        }
        for service in self.registry.list(&services(), "", &ListOptions::default()).await?.items {
            for port in ports_of(service.object()) {
                self.check_port(&service, port, &held).await?;
            }
        }
        Ok(())
    }

    async fn check_port(
        &self,
        service: &Stored,
        port: i64,
        held: &HashMap<u16, HeldPort>,
    ) -> Result<(), Box<Status>> {
        let warn = |reason, note| async move {
            let warning = Warning { reason, action: "PortAllocation", note };
            self.recorder.warn(service, &warning).await;
        };
        let Some(number) = u16::try_from(port).ok().filter(|number| self.range.contains(number)) else {
            let (first, last) = (self.range.start(), self.range.end());
            self.count("outOfRange");
            let note =
                format!("Port {port} is not within the port range {first}-{last}; please recreate service");
            warn("PortOutOfRange", note).await;
            return Ok(());
        };
        match held.get(&number) {
            Some(holder) if holder.namespace == service.namespace() && holder.name == service.name() => {}
            Some(_) => {
                self.count("duplicate");
                let note = format!("Port {port} was assigned to multiple services; please recreate service");
                warn("PortAlreadyAllocated", note).await;
            }
            // A Service that was written in the meantime is handled by its own event.
            None => {
                if self.in_use.hold(number, service).await? {
                    self.count("repair");
                    warn("PortNotAllocated", format!("Port {port} is not allocated; repairing")).await;
                }
            }
        }
        Ok(())
    }

    /// Returns true if the holder of a port exists and uses the port.
    async fn has(&self, held: &HeldPort) -> Result<bool, Box<Status>> {
        let (namespace, name) = (held.namespace.clone(), held.name.clone());
        let service = self.registry.get_stored(&ObjectRef { resource: services(), namespace, name }).await?;
        Ok(service.is_some_and(|service| ports_of(service.object()).contains(&i64::from(held.port))))
    }

    fn count(&self, what: &'static str) {
        self.found.get_or_create(&[("type", what)]).inc();
    }
}

/// Returns the distinct node ports of a Service, including that for health checks.
fn ports_of(service: &Object) -> Vec<i64> {
    let ports = service.at(&["spec", "ports"]);
    let ports = ports.items().filter_map(|port| port.field("nodePort").i64());
    let mut all: Vec<i64> = ports.chain(service.at(&["spec", "healthCheckNodePort"]).i64()).collect();
    all.retain(|port| *port != 0);
    all.sort_unstable();
    all.dedup();
    all
}
