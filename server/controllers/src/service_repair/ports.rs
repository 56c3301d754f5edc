//! Repairs node ports: each port of a Service is allocated to it, and ports without a Service are free.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use portico_kit::metrics::{self, Desc};
use portico_machinery::{Object, Status};
use portico_registry::{ListOptions, ObjectRef, Registry, StoredObject};
use portico_resources::{NodePortAllocation, NodePortAllocations};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::resources::services;
use crate::recorder::{Recorder, Warning};

/// Upstream's interval.
const PERIOD: Duration = Duration::from_secs(180);

/// Repair of node ports.
#[derive(Clone)]
pub(super) struct PortRepair {
    registry: Registry,
    in_use: NodePortAllocations,
    range: RangeInclusive<u16>,
    recorder: Recorder,
    found: Family<[(&'static str, &'static str); 1], Counter>,
    failed: Counter,
}

impl PortRepair {
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
        let in_use = NodePortAllocations::new(registry.clone());
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
        let mut allocated: HashMap<u16, NodePortAllocation> = HashMap::new();
        for port in self.in_use.all().await? {
            if self.is_used(&port).await? {
                allocated.insert(port.port, port);
            } else if self.in_use.release(&port).await? {
                tracing::warn!(port = port.port, "leaked node port released");
                self.count_error("leak");
            }
        }
        for service in self.registry.list(&services(), "", &ListOptions::default()).await?.items {
            for port in ports_of(service.object()) {
                self.check_port(&service, port, &allocated).await?;
            }
        }
        Ok(())
    }

    async fn check_port(
        &self,
        service: &StoredObject,
        port: i64,
        allocated: &HashMap<u16, NodePortAllocation>,
    ) -> Result<(), Box<Status>> {
        let warn = |reason, note| async move {
            let warning = Warning { reason, action: "PortAllocation", note };
            self.recorder.warn(service, &warning).await;
        };
        let Some(number) = u16::try_from(port).ok().filter(|number| self.range.contains(number)) else {
            let (first, last) = (self.range.start(), self.range.end());
            self.count_error("outOfRange");
            let note =
                format!("Port {port} is not within the port range {first}-{last}; please recreate service");
            warn("PortOutOfRange", note).await;
            return Ok(());
        };
        match allocated.get(&number) {
            Some(holder) if holder.namespace == service.namespace() && holder.name == service.name() => {}
            Some(_) => {
                self.count_error("duplicate");
                let note = format!("Port {port} was assigned to multiple services; please recreate service");
                warn("PortAlreadyAllocated", note).await;
            }
            // A Service that was written in the meantime is handled by its own event.
            None => {
                if self.in_use.allocate(number, service).await? {
                    self.count_error("repair");
                    warn("PortNotAllocated", format!("Port {port} is not allocated; repairing")).await;
                }
            }
        }
        Ok(())
    }

    /// Returns true if the holder of a port exists and uses the port.
    async fn is_used(&self, allocation: &NodePortAllocation) -> Result<bool, Box<Status>> {
        let (namespace, name) = (allocation.namespace.clone(), allocation.name.clone());
        let service = self.registry.get_stored(&ObjectRef { resource: services(), namespace, name }).await?;
        Ok(service.is_some_and(|service| ports_of(service.object()).contains(&i64::from(allocation.port))))
    }

    fn count_error(&self, kind: &'static str) {
        self.found.get_or_create(&[("type", kind)]).inc();
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
