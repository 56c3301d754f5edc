//! Decides the slices of a Service (`Reconciler.Reconcile` of `k8s.io/endpointslice`). Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::hints::{self, TopologyPreference};
use super::labels::labels_of;
use super::pack::pack;
use super::zones;
use crate::service_endpoints::pod::Pod;
use crate::service_endpoints::service::Service;
use crate::service_endpoints::slice::{
    Conditions, Endpoint, EndpointSet, Owner, Port, PortSet, Slice, TargetRef,
};
use crate::service_endpoints::slice_writer::SliceChanges;

/// Input of the decision.
pub struct SliceInput<'a> {
    pub service: &'a Service,
    /// Pods that the Service selects.
    pub pods: &'a [Pod],
    /// Slices of the Service that are not being deleted.
    pub existing: Vec<Slice>,
    /// Zones of the existing nodes of pods. Nodes that are not listed do not exist.
    pub nodes: &'a BTreeMap<String, Option<String>>,
    /// Shares of zones; `None` if facts about nodes are missing.
    pub shares: Option<&'a BTreeMap<String, f64>>,
    /// Maximum number of endpoints per slice.
    pub max: usize,
}

/// Writes of slices, and counts of changes.
#[derive(Debug, Default)]
pub struct SliceDecision {
    pub changes: SliceChanges,
    /// Nodes that pods are bound to and that do not exist; these pods are omitted until the nodes exist.
    pub missing_nodes: BTreeSet<String>,
    /// Number of added endpoints.
    pub added: usize,
    /// Number of removed endpoints.
    pub removed: usize,
}

/// Desired endpoints with one set of ports.
#[derive(Debug, Default)]
struct DesiredEndpoints {
    ports: Vec<Port>,
    endpoints: EndpointSet,
}

/// Decides the slices of all address types.
#[must_use]
pub fn decide(mut input: SliceInput<'_>) -> SliceDecision {
    let mut decision = SliceDecision::default();
    let mut remaining = std::mem::take(&mut input.existing);
    for address_type in input.service.address_types() {
        let (existing, others) = remaining.into_iter().partition(|slice| slice.address_type == address_type);
        remaining = others;
        decide_address_type(&input, address_type, existing, &mut decision);
    }
    decision.changes.delete.extend(remaining);
    decision
}

/// Decides the slices of one address type (`Reconciler.reconcileByAddressType`).
fn decide_address_type(
    input: &SliceInput<'_>,
    address_type: &str,
    existing: Vec<Slice>,
    decision: &mut SliceDecision,
) {
    let service = input.service;
    let all = existing.clone();
    let (owned, mut delete): (Vec<_>, Vec<_>) =
        existing.into_iter().partition(|slice| slice.is_owned_by(service));
    let mut by_ports: BTreeMap<PortSet, Vec<Slice>> = BTreeMap::new();
    for slice in owned {
        by_ports.entry(slice.port_set()).or_default().push(slice);
    }
    let (mut create, mut update) = (Vec::new(), Vec::new());
    for (ports, desired) in desired_endpoints(input, address_type, &mut decision.missing_nodes) {
        let empty = empty_slice(service, address_type, desired.ports);
        let existing = by_ports.remove(&ports).unwrap_or_default();
        let packed = pack(service, existing, desired.endpoints, &empty, input.max);
        create.extend(packed.create);
        update.extend(packed.update);
        delete.extend(packed.delete);
        decision.added += packed.added;
        decision.removed += packed.removed;
    }
    delete.extend(by_ports.into_values().flatten());
    if all.len() == delete.len() && create.is_empty() {
        keep_placeholder(empty_slice(service, address_type, Vec::new()), &mut create, &mut delete);
    }
    let written: BTreeSet<&str> = update.iter().chain(&delete).map(|slice| slice.name.as_str()).collect();
    let unchanged: Vec<Slice> =
        all.into_iter().filter(|slice| !written.contains(slice.name.as_str())).collect();
    let preferred = TopologyPreference::of(service.spec.traffic_distribution.as_deref());
    match preferred {
        _ if service.wants_zone_hints() => {
            zones::distribute(input.shares, &mut create, &mut update, unchanged);
        }
        Some(preferred) => hints::set_hints(preferred, &mut create, &mut update, unchanged),
        None => hints::remove_hints(&mut create, &mut update, unchanged),
    }
    let mut changes = SliceChanges { create, update, delete };
    changes.recycle(|old, new| old.address_type == new.address_type && old.is_owned_by(service));
    if service.metadata.deletion_timestamp.is_some() {
        // The garbage collector may already have listed the dependents, and would miss a slice created now.
        changes.create.clear();
    }
    let all = &mut decision.changes;
    all.create.append(&mut changes.create);
    all.update.append(&mut changes.update);
    all.delete.append(&mut changes.delete);
}

/// Keeps one empty slice for a Service without endpoints, so that its absence of endpoints is known.
fn keep_placeholder(placeholder: Slice, create: &mut Vec<Slice>, delete: &mut Vec<Slice>) {
    let is_placeholder = |slice: &Slice| {
        slice.labels == placeholder.labels && slice.endpoints.is_empty() && slice.ports.is_empty()
    };
    match delete.as_slice() {
        [one] if is_placeholder(one) => delete.clear(),
        _ => create.push(placeholder),
    }
}

fn empty_slice(service: &Service, address_type: &str, ports: Vec<Port>) -> Slice {
    let metadata = &service.metadata;
    let owner =
        Owner { kind: "Service", namespace: &metadata.namespace, name: &metadata.name, uid: &metadata.uid };
    let mut slice = Slice::new(&owner, address_type, ports);
    slice.labels = labels_of(service, &BTreeMap::new()).0;
    slice
}

fn desired_endpoints(
    input: &SliceInput<'_>,
    address_type: &str,
    missing_nodes: &mut BTreeSet<String>,
) -> BTreeMap<PortSet, DesiredEndpoints> {
    let service = input.service;
    let mut by_ports: BTreeMap<PortSet, DesiredEndpoints> = BTreeMap::new();
    for pod in input.pods.iter().filter(|pod| pod.belongs_in_endpoints(true)) {
        let ports = ports_of(service, pod);
        let endpoint_set = by_ports.entry(ports.iter().cloned().collect()).or_default();
        endpoint_set.ports = ports;
        let node = &pod.spec.node_name;
        // Without a scheduler, pods may not be bound to a node: their own status is used. Upstream never has unbound pods with an
        // address.
        let is_missing = !node.is_empty() && !input.nodes.contains_key(node);
        if is_missing && !service.spec.publish_not_ready_addresses {
            missing_nodes.insert(node.clone());
            continue;
        }
        let zone = input.nodes.get(node).cloned().flatten();
        let endpoint = endpoint_of(service, pod, zone, address_type);
        if !endpoint.addresses.is_empty() {
            endpoint_set.endpoints.insert(endpoint.key(), endpoint);
        }
    }
    by_ports
}

/// Returns the ports of a pod; ports that the pod lacks are omitted (`getEndpointPorts`).
fn ports_of(service: &Service, pod: &Pod) -> Vec<Port> {
    let found = service.spec.ports.iter().filter_map(|port| {
        Some(Port {
            name: Some(port.name.clone()),
            port: Some(pod.find_port(port)?),
            protocol: Some(port.protocol.clone()),
            app_protocol: port.app_protocol.clone(),
        })
    });
    found.collect()
}

/// Converts a pod to an endpoint (`podToEndpoint`).
fn endpoint_of(service: &Service, pod: &Pod, zone: Option<String>, address_type: &str) -> Endpoint {
    let (serving, terminating) = (pod.is_ready(), pod.is_terminating());
    let ready = service.spec.publish_not_ready_addresses || (serving && !terminating);
    let (metadata, node) = (&pod.metadata, &pod.spec.node_name);
    Endpoint {
        addresses: pod.addresses(address_type == "IPv6").map(|ip| ip.to_string()).collect(),
        conditions: Conditions { ready: Some(ready), serving: Some(serving), terminating: Some(terminating) },
        hostname: pod.hostname_for(service).map(str::to_owned),
        target_ref: Some(TargetRef {
            kind: "Pod".to_owned(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            ..TargetRef::default()
        }),
        node_name: (!node.is_empty()).then(|| node.clone()),
        zone,
        ..Endpoint::default()
    }
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
