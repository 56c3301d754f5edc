//! Defaults of a Service that depend on its other fields. The families are those of a single-stack IPv4 server until
//! the core API server allocates addresses.

use portico_machinery::{Node, Object};

const AFFINITY_SECONDS: i64 = 10_800;

/// Sets what is absent, on create and update.
pub(super) fn set(object: &mut Object) {
    default(object, "type", "ClusterIP");
    default(object, "sessionAffinity", "None");
    set_ports(object);
    let text = |object: &Object, field: &str| object.at(&["spec", field]).str().to_owned();
    let kind = text(object, "type");
    if text(object, "sessionAffinity") == "None" {
        object.remove(&["spec", "sessionAffinityConfig"]);
    } else if text(object, "sessionAffinity") == "ClientIP" {
        let path = ["spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"];
        if !object.at(&path).is_present() {
            object.set(&path, AFFINITY_SECONDS);
        }
    }
    let external = matches!(kind.as_str(), "NodePort" | "LoadBalancer")
        || (kind == "ClusterIP" && !object.at(&["spec", "externalIPs"]).is_empty());
    if external {
        default(object, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" && !object.at(&["spec", "allocateLoadBalancerNodePorts"]).is_present() {
        object.set(&["spec", "allocateLoadBalancerNodePorts"], true);
    }
    if kind == "ExternalName" {
        drop_addresses(object);
    } else {
        default(object, "internalTrafficPolicy", "Cluster");
        set_families(object);
    }
}

fn default(object: &mut Object, field: &str, value: &str) {
    if object.at(&["spec", field]).str().is_empty() {
        object.set(&["spec", field], value);
    }
}

fn set_ports(object: &mut Object) {
    let ports: Vec<Node> = object
        .at(&["spec", "ports"])
        .items()
        .filter_map(|p| Object::from_node(p.node()?).ok())
        .map(|mut port| {
            if port.at(&["protocol"]).str().is_empty() {
                port.set(&["protocol"], "TCP");
            }
            let has_target = {
                let target = port.at(&["targetPort"]);
                target.i64().is_some_and(|n| n != 0) || !target.str().is_empty()
            };
            if !has_target {
                port.copy_within("port", "targetPort");
            }
            port.into_node()
        })
        .collect();
    if !ports.is_empty() {
        object.set(&["spec", "ports"], ports.into_iter().map(|n| n.0).collect::<Vec<_>>());
    }
}

trait CopyWithin {
    fn copy_within(&mut self, from: &str, to: &str);
}

impl CopyWithin for Object {
    fn copy_within(&mut self, from: &str, to: &str) {
        if let Some(node) = self.get(&[from]) {
            self.put(&[to], node);
        }
    }
}

/// An external name has no addresses of its own, whatever the client left in place.
fn drop_addresses(object: &mut Object) {
    let path = ["spec", "internalTrafficPolicy"];
    if object.at(&path).str() == "Cluster" {
        object.remove(&path);
    }
}

fn set_families(object: &mut Object) {
    let ip = object.at(&["spec", "clusterIP"]).str().to_owned();
    if !ip.is_empty() && object.at(&["spec", "clusterIPs"]).is_empty() {
        object.set(&["spec", "clusterIPs"], [&ip]);
    }
    let headless = ip == "None";
    let selector = !object.at(&["spec", "selector"]).is_empty();
    let both = headless && !selector;
    default(object, "ipFamilyPolicy", if both { "RequireDualStack" } else { "SingleStack" });
    if object.at(&["spec", "ipFamilies"]).is_empty() {
        let single = object.at(&["spec", "ipFamilyPolicy"]).str() == "SingleStack";
        let families: Vec<&str> = match (both && !single, ip.contains(':')) {
            (true, _) => vec!["IPv4", "IPv6"],
            (false, true) => vec!["IPv6"],
            (false, false) => vec!["IPv4"],
        };
        object.set(&["spec", "ipFamilies"], families);
    }
}

/// An update that leaves the address out keeps it; one that becomes an external name loses it.
pub(super) fn keep_addresses(new: &mut Object, old: &Object) {
    let external = |object: &Object| object.at(&["spec", "type"]).str() == "ExternalName";
    let fields = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];
    if external(new) {
        for field in fields {
            if new.at(&["spec", field]).same_as(&old.at(&["spec", field])) {
                new.remove(&["spec", field]);
            }
        }
    } else if !external(old) {
        for field in fields {
            if !new.at(&["spec", field]).is_present() {
                new.copy_from(old, &["spec", field]);
            }
        }
        sync_list(new, old);
    }
}

/// Who changes the address and leaves the list alone means the list, too.
fn sync_list(new: &mut Object, old: &Object) {
    let (one, list) = (["spec", "clusterIP"], ["spec", "clusterIPs"]);
    if !new.at(&one).same_as(&old.at(&one)) && new.at(&list).same_as(&old.at(&list)) {
        let ip = new.at(&one).str().to_owned();
        new.set(&list, [ip]);
    }
}

/// `ipMode` of a load balancer's addresses.
pub(super) fn set_status(object: &mut Object) {
    if object.at(&["spec", "type"]).str() != "LoadBalancer" {
        return;
    }
    let path = ["status", "loadBalancer", "ingress"];
    let ingress: Vec<_> = object
        .at(&path)
        .items()
        .filter_map(|i| Object::from_node(i.node()?).ok())
        .map(|mut entry| {
            if !entry.at(&["ip"]).str().is_empty() && !entry.at(&["ipMode"]).is_present() {
                entry.set(&["ipMode"], "VIP");
            }
            entry.into_node().0
        })
        .collect();
    if !ingress.is_empty() {
        object.set(&path, ingress);
    }
}
