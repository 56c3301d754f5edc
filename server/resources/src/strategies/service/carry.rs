//! What an update keeps although its writer left it out, and what it loses because the new type has no use for it.

use portico_machinery::Object;

use super::view::View;
use portico_validation::checks;

const ADDRESS_FIELDS: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];

/// Fills in what was given out before, and brings the one address and the list of addresses together.
pub(super) fn fill_in(new: &mut Object, old: &Object) {
    let (then, now) = (View::of(old), View::of(new));
    let addresses = then.needs_address() && now.needs_address();
    let node_ports = then.allocates_node_ports() && now.allocates_node_ports();
    let health = then.needs_health_port() && now.needs_health_port() && now.health_port() == 0;
    if addresses {
        fill_in_addresses(new, old);
    }
    if node_ports {
        fill_in_node_ports(new, old);
    }
    if health {
        new.copy_from(old, &["spec", "healthCheckNodePort"]);
    }
    sync(new, old);
}

fn fill_in_addresses(new: &mut Object, old: &Object) {
    if new.at(&["spec", "clusterIP"]).str().is_empty() {
        new.copy_from(old, &["spec", "clusterIP"]);
    }
    let same = new.at(&["spec", "clusterIP"]).str() == old.at(&["spec", "clusterIP"]).str();
    if same && new.at(&["spec", "clusterIPs"]).is_empty() {
        new.copy_from(old, &["spec", "clusterIPs"]);
    }
}

/// A port without a node port gets that of the old port of the same name, unless another port has it.
fn fill_in_node_ports(new: &mut Object, old: &Object) {
    let before = View::of(old);
    let mut used: Vec<i64> = before.node_ports();
    let now = View::of(new).node_ports();
    used.retain(|port| now.contains(port));
    new.edit_each(&["spec", "ports"], |port| {
        if port.at(&["nodePort"]).i64().unwrap_or(0) != 0 {
            return;
        }
        let name = port.at(&["name"]).str();
        let was = before.ports().filter(|p| p.field("name").str() == name).last();
        let was = was.and_then(|p| p.field("nodePort").i64()).unwrap_or(0);
        if was != 0 && !used.contains(&was) {
            used.push(was);
            port.set(&["nodePort"], was);
        }
    });
}

/// On creation: who names one address means a list of it.
pub(super) fn sync_new(new: &mut Object) {
    let address = new.at(&["spec", "clusterIP"]).str().to_owned();
    if !address.is_empty() && new.at(&["spec", "clusterIPs"]).is_empty() {
        new.set(&["spec", "clusterIPs"], [address]);
    }
}

/// Who changes the one address and leaves the list alone means the list, too.
fn sync(new: &mut Object, old: &Object) {
    let (one, list) = (["spec", "clusterIP"], ["spec", "clusterIPs"]);
    let (address, before) = (new.at(&one).str().to_owned(), old.at(&one).str());
    if new.at(&list).is_empty() && !old.at(&list).is_empty() && address == before {
        new.copy_from(old, &list);
    }
    let untouched = new.at(&list).is_empty() || checks::same(&new.at(&list), &old.at(&list));
    if address == before || !untouched {
        return;
    }
    if address.is_empty() {
        new.remove(&list);
    } else {
        new.set(&list, [address]);
    }
}

/// Takes away what the new type has no use for, where the writer did not change it.
pub(super) fn wipe(new: &mut Object, old: &Object) {
    let (then, now) = (View::of(old), View::of(new));
    let same = |field| checks::same(&now.field(field), &then.field(field));
    let mut gone: Vec<&str> = Vec::new();
    let mut drop = |when: bool, field: &'static str| {
        if when && same(field) {
            gone.push(field);
        }
    };
    if !then.is_external_name() && now.is_external_name() {
        let list = same("clusterIPs");
        for field in ADDRESS_FIELDS {
            drop(list || !field.starts_with("clusterIP"), field);
        }
    }
    let balanced = then.kind() == "LoadBalancer" && now.kind() != "LoadBalancer";
    drop(then.needs_health_port() && !now.needs_health_port(), "healthCheckNodePort");
    drop(balanced, "allocateLoadBalancerNodePorts");
    drop(balanced, "loadBalancerClass");
    drop(then.is_external() && !now.is_external(), "externalTrafficPolicy");
    let known = then.node_ports();
    let no_new_port = now.node_ports().iter().all(|port| known.contains(port));
    let node_ports = then.is_node_port_type() && !now.is_node_port_type() && no_new_port;
    let status = now.kind() != "LoadBalancer";
    for field in gone {
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
