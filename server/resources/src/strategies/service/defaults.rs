//! Defaults of a Service that depend on other fields. The data file contains the static defaults.

use portico_machinery::{Cursor, Object};

use super::service_spec::ServiceSpec;

const AFFINITY_SECONDS: i64 = 10_800;

/// Sets absent fields.
pub(super) fn set(object: &mut Object) {
    object.edit_each(&["spec", "ports"], |port| {
        let is_set = |at: Cursor<'_>| at.i64().unwrap_or(0) != 0 || !at.str().is_empty();
        if !is_set(port.at(&["targetPort"])) {
            let number = port.at(&["port"]).i64().unwrap_or(0);
            port.set(&["targetPort"], number);
        }
    });
    let spec = ServiceSpec::of(object);
    let (kind, affinity) = (spec.kind().to_owned(), spec.field("sessionAffinity").str().to_owned());
    let external = spec.is_external();
    if affinity == "None" {
        object.remove(&["spec", "sessionAffinityConfig"]);
    }
    let timeout = ["spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"];
    if affinity == "ClientIP" && !object.at(&timeout).is_present() {
        object.set(&timeout, AFFINITY_SECONDS);
    }
    if external && object.at(&["spec", "externalTrafficPolicy"]).str().is_empty() {
        object.set(&["spec", "externalTrafficPolicy"], "Cluster");
    }
    if kind == "LoadBalancer" {
        let allocate = ["spec", "allocateLoadBalancerNodePorts"];
        if !object.at(&allocate).is_present() {
            object.set(&allocate, true);
        }
        object.edit_each(&["status", "loadBalancer", "ingress"], |entry| {
            if !entry.at(&["ip"]).str().is_empty() && !entry.at(&["ipMode"]).is_present() {
                entry.set(&["ipMode"], "VIP");
            }
        });
    }
    let internal = ["spec", "internalTrafficPolicy"];
    match kind.as_str() {
        // ExternalName does not have the default that other types have.
        "ExternalName" if object.at(&internal).str() == "Cluster" => {
            object.remove(&internal);
        }
        "ExternalName" => {}
        _ if !object.at(&internal).is_present() => object.set(&internal, "Cluster"),
        _ => {}
    }
}
