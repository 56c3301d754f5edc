//! Fields that an update copies from the old Service, and fields that it drops because the new type does not use them.

use portico_machinery::Object;

use super::service_spec::ServiceSpec;
use portico_validation::checks;

const ADDRESS_FIELDS: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];

/// Copies allocated values that the new Service lacks, and synchronizes `clusterIP` and `clusterIPs` (upstream's
/// `patchAllocatedValues` and `NormalizeClusterIPs`).
pub(super) fn copy_allocated(new: &mut Object, old: &Object) {
    let (old_spec, new_spec) = (ServiceSpec::of(old), ServiceSpec::of(new));
    let addresses = old_spec.needs_address() && new_spec.needs_address();
    let node_ports = old_spec.allocates_node_ports() && new_spec.allocates_node_ports();
    let health = old_spec.needs_health_port() && new_spec.needs_health_port() && new_spec.health_port() == 0;
    if addresses {
        copy_addresses(new, old);
    }
    if node_ports {
        copy_node_ports(new, old);
    }
    if health {
        new.copy_from(old, &["spec", "healthCheckNodePort"]);
    }
    sync(new, old);
}

fn copy_addresses(new: &mut Object, old: &Object) {
    if new.at(&["spec", "clusterIP"]).str().is_empty() {
        new.copy_from(old, &["spec", "clusterIP"]);
    }
    let has_same_address = new.at(&["spec", "clusterIP"]).str() == old.at(&["spec", "clusterIP"]).str();
    if has_same_address && new.at(&["spec", "clusterIPs"]).is_empty() {
        new.copy_from(old, &["spec", "clusterIPs"]);
    }
}

/// Copies the node port of the old port with the same name to each port without a node port, unless another port uses it.
fn copy_node_ports(new: &mut Object, old: &Object) {
    let before = ServiceSpec::of(old);
    let mut used: Vec<i64> = before.node_ports();
    let new_ports = ServiceSpec::of(new).node_ports();
    used.retain(|port| new_ports.contains(port));
    new.edit_each(&["spec", "ports"], |port| {
        if port.at(&["nodePort"]).i64().unwrap_or(0) != 0 {
            return;
        }
        let name = port.at(&["name"]).str();
        let old_port = before.ports().filter(|p| p.field("name").str() == name).last();
        let node_port = old_port.and_then(|p| p.field("nodePort").i64()).unwrap_or(0);
        if node_port != 0 && !used.contains(&node_port) {
            used.push(node_port);
            port.set(&["nodePort"], node_port);
        }
    });
}

/// Sets `clusterIPs` of a new Service that sets only `clusterIP`.
pub(super) fn sync_new(new: &mut Object) {
    let address = new.at(&["spec", "clusterIP"]).str().to_owned();
    if !address.is_empty() && new.at(&["spec", "clusterIPs"]).is_empty() {
        new.set(&["spec", "clusterIPs"], [address]);
    }
}

/// Sets `clusterIPs` if an update changes only `clusterIP`.
fn sync(new: &mut Object, old: &Object) {
    let (cluster_ip, cluster_ips) = (["spec", "clusterIP"], ["spec", "clusterIPs"]);
    let (address, before) = (new.at(&cluster_ip).str().to_owned(), old.at(&cluster_ip).str());
    if new.at(&cluster_ips).is_empty() && !old.at(&cluster_ips).is_empty() && address == before {
        new.copy_from(old, &cluster_ips);
    }
    let untouched =
        new.at(&cluster_ips).is_empty() || checks::is_same(&new.at(&cluster_ips), &old.at(&cluster_ips));
    if address == before || !untouched {
        return;
    }
    if address.is_empty() {
        new.remove(&cluster_ips);
    } else {
        new.set(&cluster_ips, [address]);
    }
}

/// Drops unchanged fields that the new type does not use (upstream's `dropTypeDependentFields`).
pub(super) fn drop_unused_fields(new: &mut Object, old: &Object) {
    let (old_spec, new_spec) = (ServiceSpec::of(old), ServiceSpec::of(new));
    let is_same = |field| checks::is_same(&new_spec.field(field), &old_spec.field(field));
    let mut removed: Vec<&str> = Vec::new();
    let mut drop = |condition: bool, field: &'static str| {
        if condition && is_same(field) {
            removed.push(field);
        }
    };
    if !old_spec.is_external_name() && new_spec.is_external_name() {
        let list = is_same("clusterIPs");
        for field in ADDRESS_FIELDS {
            drop(list || !field.starts_with("clusterIP"), field);
        }
    }
    let balanced = old_spec.kind() == "LoadBalancer" && new_spec.kind() != "LoadBalancer";
    drop(old_spec.needs_health_port() && !new_spec.needs_health_port(), "healthCheckNodePort");
    drop(balanced, "allocateLoadBalancerNodePorts");
    drop(balanced, "loadBalancerClass");
    drop(old_spec.is_external() && !new_spec.is_external(), "externalTrafficPolicy");
    let old_node_ports = old_spec.node_ports();
    let no_new_port = new_spec.node_ports().iter().all(|port| old_node_ports.contains(port));
    let node_ports = old_spec.is_node_port_type() && !new_spec.is_node_port_type() && no_new_port;
    let status = new_spec.kind() != "LoadBalancer";
    for field in removed {
        new.remove(&["spec", field]);
    }
    if node_ports {
        new.edit_each(&["spec", "ports"], |port| {
            port.remove(&["nodePort"]);
        });
    }
    if status {
        new.remove(&["status", "loadBalancer", "ingress"]);
    }
}
