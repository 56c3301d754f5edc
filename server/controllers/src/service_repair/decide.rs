//! Decides the repair of an address of a Service, or of an IPAddress (upstream's ipallocator repair). Pure.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use jiff::Timestamp;
use portico_machinery::{GroupVersion, Object, time};

use crate::recorder::Warning;

const FAMILY_LABEL: &str = "ipaddress.kubernetes.io/ip-family";
const MANAGER_LABEL: &str = "ipaddress.kubernetes.io/managed-by";
const MANAGER: &str = "ipallocator.k8s.io";

/// Time that another API server may take between allocating an address and writing its Service.
const WRITE: Duration = Duration::from_secs(60);
/// Time that another API server may take to release the address of a refused write.
const UNDO: Duration = Duration::from_secs(5);

/// Repair of an address of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    Leave,
    /// Only report the problem, because it cannot be repaired.
    Warn(Warning),
    /// Create the IPAddress, after deleting an existing one.
    Make(Option<Warning>),
}

/// Action for an IPAddress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cleanup {
    Leave,
    /// Check again after this duration.
    Wait(Duration),
    Delete(Warning),
}

/// Returns the addresses of a Service.
#[must_use]
pub fn addresses_of(service: &Object) -> Vec<&str> {
    if matches!(service.at(&["spec", "clusterIP"]).str(), "" | "None") {
        return Vec::new();
    }
    service.at(&["spec", "clusterIPs"]).items().map(|address| address.str()).collect()
}

/// Decides about an address of a Service. `known` is the IPAddress with that name, `referred` the Service that it refers to.
#[must_use]
pub fn repair(
    service: &Object,
    address: &str,
    ranges: &[IpNet],
    known: Option<&Object>,
    referred: Option<&Object>,
) -> Repair {
    let Ok(ip) = address.parse::<IpAddr>() else {
        let note = format!("Cluster IP {address} is not a valid IP; please recreate Service");
        return Repair::Warn(Warning { reason: "ClusterIPNotValid", action: "ClusterIPValidation", note });
    };
    let (family, ip_of) = (family(ip), (service.namespace(), service.name()));
    let warning = |reason, note| Warning { reason, action: "ClusterIPAllocation", note };
    if !ranges.iter().any(|range| range.contains(&ip)) {
        let note = format!(
            "Cluster IP [{family}]: {ip} is not within any configured Service CIDR; please recreate service"
        );
        return Repair::Warn(warning("ClusterIPOutOfRange", note));
    }
    let Some(known) = known else {
        let note = format!("Cluster IP [{family}]: {ip} is not allocated; repairing");
        return Repair::Make(Some(warning("ClusterIPNotAllocated", note)));
    };
    let others = !names_a_service(known) || (parent(known) != ip_of && referred.is_none());
    if others {
        let (namespace, name) = ip_of;
        let note = format!(
            "the ClusterIP [{family}]: {ip} for Service {namespace}/{name} has a wrong reference; repairing"
        );
        return Repair::Make(Some(warning("ClusterIPNotAllocated", note)));
    }
    if parent(known) != ip_of && referred.is_some_and(|other| addresses_of(other).contains(&known.name())) {
        let note =
            format!("Cluster IP [{family}]:{ip} was assigned to multiple services; please recreate service");
        return Repair::Warn(warning("ClusterIPAlreadyAllocated", note));
    }
    match is_managed(known) && known.label(FAMILY_LABEL) == Some(family) {
        true => Repair::Leave,
        false => Repair::Make(None),
    }
}

/// Decides about an IPAddress. `referred` is the Service that it refers to.
#[must_use]
pub fn cleanup(address: &Object, referred: Option<&Object>, now: Timestamp) -> Cleanup {
    if !is_managed(address) {
        return Cleanup::Leave;
    }
    let (name, (namespace, service)) = (address.name(), parent(address));
    let delete = |reason, note| Cleanup::Delete(Warning { reason, action: "IPAddressAllocation", note });
    if !names_a_service(address) {
        let reference = address.at(&["spec", "parentRef"]).json();
        let note = format!(
            "IPAddress {name} appears to have been modified, not referencing a Service {reference}: cleaning up"
        );
        return delete("IPAddressNotAllocated", note);
    }
    let age = age(address, now);
    let Some(referred) = referred else {
        let note = format!(
            "IPAddress: {name} for Service {namespace}/{service} appears to have leaked: cleaning up"
        );
        return match WRITE.checked_sub(age).filter(|left| !left.is_zero()) {
            Some(left) => Cleanup::Wait(left),
            None => delete("IPAddressNotAllocated", note),
        };
    };
    if addresses_of(referred).contains(&name) {
        return Cleanup::Leave;
    }
    let is_external = referred.at(&["spec", "type"]).str() == "ExternalName";
    let is_newer = created(address) > created(referred);
    let grace = if is_external { WRITE } else { UNDO };
    if (is_external || is_newer) && age < grace {
        return Cleanup::Wait(grace.saturating_sub(age));
    }
    let note =
        format!("IPAddress: {name} for Service {namespace}/{service} has a wrong reference; cleaning up");
    delete("IPAddressWrongReference", note)
}

/// Returns the IPAddress for an address of a Service.
#[must_use]
pub fn address_for(service: &Object, ip: IpAddr) -> Object {
    let mut object = Object::new(&GroupVersion::new("networking.k8s.io", "v1").kind("IPAddress"));
    object.set(&["metadata", "name"], ip.to_string());
    object.set(&["metadata", "labels", FAMILY_LABEL], family(ip));
    object.set(&["metadata", "labels", MANAGER_LABEL], MANAGER);
    object.set(&["spec", "parentRef", "resource"], "services");
    object.set(&["spec", "parentRef", "namespace"], service.namespace());
    object.set(&["spec", "parentRef", "name"], service.name());
    object
}

/// Returns the namespace and name of the object that an IPAddress refers to.
#[must_use]
pub fn parent(address: &Object) -> (&str, &str) {
    let parent = address.at(&["spec", "parentRef"]);
    (parent.field("namespace").str(), parent.field("name").str())
}

/// Returns true if an IPAddress refers to a Service.
#[must_use]
pub fn names_a_service(address: &Object) -> bool {
    let parent = address.at(&["spec", "parentRef"]);
    parent.field("group").str().is_empty() && parent.field("resource").str() == "services"
}

fn is_managed(address: &Object) -> bool {
    address.label(MANAGER_LABEL) == Some(MANAGER)
}

fn family(ip: IpAddr) -> &'static str {
    if ip.is_ipv4() { "IPv4" } else { "IPv6" }
}

fn created(object: &Object) -> Option<Timestamp> {
    object.creation_timestamp().and_then(time::parse)
}

fn age(object: &Object, now: Timestamp) -> Duration {
    created(object).and_then(|then| now.duration_since(then).try_into().ok()).unwrap_or_default()
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
