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
const WRITE_GRACE: Duration = Duration::from_secs(60);
/// Time that another API server may take to release the address of a refused write.
const UNDO_GRACE: Duration = Duration::from_secs(5);

/// Repair of an address of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    Skip,
    /// Only report the problem, because it cannot be repaired.
    Warn(Warning),
    /// Create the IPAddress, after deleting an existing one.
    Create(Option<Warning>),
}

/// Action for an IPAddress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cleanup {
    Keep,
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
pub fn decide_repair(
    service: &Object,
    address: &str,
    ranges: &[IpNet],
    existing: Option<&Object>,
    referenced_service: Option<&Object>,
) -> Repair {
    let Ok(ip) = address.parse::<IpAddr>() else {
        let note = format!("Cluster IP {address} is not a valid IP; please recreate Service");
        return Repair::Warn(Warning { reason: "ClusterIPNotValid", action: "ClusterIPValidation", note });
    };
    let (family, service_key) = (family(ip), (service.namespace(), service.name()));
    let warning = |reason, note| Warning { reason, action: "ClusterIPAllocation", note };
    if !ranges.iter().any(|range| range.contains(&ip)) {
        let note = format!(
            "Cluster IP [{family}]: {ip} is not within any configured Service CIDR; please recreate service"
        );
        return Repair::Warn(warning("ClusterIPOutOfRange", note));
    }
    let Some(existing) = existing else {
        let note = format!("Cluster IP [{family}]: {ip} is not allocated; repairing");
        return Repair::Create(Some(warning("ClusterIPNotAllocated", note)));
    };
    let has_wrong_reference =
        !refers_to_service(existing) || (parent(existing) != service_key && referenced_service.is_none());
    if has_wrong_reference {
        let (namespace, name) = service_key;
        let note = format!(
            "the ClusterIP [{family}]: {ip} for Service {namespace}/{name} has a wrong reference; repairing"
        );
        return Repair::Create(Some(warning("ClusterIPNotAllocated", note)));
    }
    if parent(existing) != service_key
        && referenced_service.is_some_and(|other| addresses_of(other).contains(&existing.name()))
    {
        let note =
            format!("Cluster IP [{family}]:{ip} was assigned to multiple services; please recreate service");
        return Repair::Warn(warning("ClusterIPAlreadyAllocated", note));
    }
    match is_managed(existing) && existing.label(FAMILY_LABEL) == Some(family) {
        true => Repair::Skip,
        false => Repair::Create(None),
    }
}

/// Decides about an IPAddress. `referred` is the Service that it refers to.
#[must_use]
pub fn decide_cleanup(address: &Object, referenced_service: Option<&Object>, now: Timestamp) -> Cleanup {
    if !is_managed(address) {
        return Cleanup::Keep;
    }
    let (name, (namespace, service)) = (address.name(), parent(address));
    let delete = |reason, note| Cleanup::Delete(Warning { reason, action: "IPAddressAllocation", note });
    if !refers_to_service(address) {
        let reference = address.at(&["spec", "parentRef"]).json();
        let note = format!(
            "IPAddress {name} appears to have been modified, not referencing a Service {reference}: cleaning up"
        );
        return delete("IPAddressNotAllocated", note);
    }
    let age = age(address, now);
    let Some(referenced_service) = referenced_service else {
        let note = format!(
            "IPAddress: {name} for Service {namespace}/{service} appears to have leaked: cleaning up"
        );
        return match WRITE_GRACE.checked_sub(age).filter(|left| !left.is_zero()) {
            Some(left) => Cleanup::Wait(left),
            None => delete("IPAddressNotAllocated", note),
        };
    };
    if addresses_of(referenced_service).contains(&name) {
        return Cleanup::Keep;
    }
    let is_external = referenced_service.at(&["spec", "type"]).str() == "ExternalName";
    let is_newer = created(address) > created(referenced_service);
    let grace = if is_external { WRITE_GRACE } else { UNDO_GRACE };
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
pub fn refers_to_service(address: &Object) -> bool {
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
#[path = "decision_tests.rs"]
mod tests;
