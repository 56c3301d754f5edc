//! Objects with which workloads find this API: the ServiceCIDR `kubernetes`, the Service `default/kubernetes`, its Endpoints
//! and its EndpointSlice.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use jiff::Timestamp;
use portico_machinery::{GroupResource, GroupVersion, Object, time};
use serde::Serialize;
use tokio::sync::watch;

use super::SystemObject;

const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";
/// Port of the Service.
pub const SERVICE_PORT: u16 = 443;

/// A port of Services and slices.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Port {
    name: &'static str,
    protocol: &'static str,
    port: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_port: Option<u16>,
}

impl Port {
    fn https(port: u16, target_port: Option<u16>) -> [Self; 1] {
        [Self { name: "https", protocol: "TCP", port, target_port }]
    }
}

/// A subset of Endpoints: the addresses with one port.
#[derive(Serialize)]
struct Subset {
    addresses: Vec<Address>,
    ports: [Port; 1],
}

#[derive(Serialize)]
struct Address {
    ip: String,
}

#[derive(Serialize)]
struct Endpoint {
    addresses: [String; 1],
    conditions: Conditions,
}

#[derive(Serialize)]
struct Conditions {
    ready: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReadyCondition<'a> {
    r#type: &'static str,
    status: &'static str,
    last_transition_time: &'a str,
    reason: &'static str,
    message: &'static str,
}

/// Function that returns the known addresses of facades.
pub type FacadeAddresses = Arc<dyn Fn() -> BTreeSet<SocketAddr> + Send + Sync>;

/// Returns the address of the single facade of this control service.
#[must_use]
pub fn single_facade(reached: watch::Receiver<Option<SocketAddr>>) -> FacadeAddresses {
    Arc::new(move || reached.borrow().iter().copied().collect())
}

/// Returns the objects. `ranges` are the ranges of cluster IPs, `first_ip` is the first address of the first range, which the
/// Service gets, and `addresses` returns the addresses of facades.
#[must_use]
pub fn system_objects(ranges: &[String], first_ip: IpAddr, addresses: &FacadeAddresses) -> Vec<SystemObject> {
    let ranges = ranges.to_vec();
    let [port, of_endpoints, of_slice] = std::array::from_fn(|_| Arc::clone(addresses));
    vec![
        SystemObject::new(
            GroupResource::new("networking.k8s.io", "servicecidrs"),
            "",
            NAME,
            move |current| range(current, &ranges),
        )
        .with_status(|current| with_ready_condition(current, &time::rfc3339(Timestamp::now()))),
        SystemObject::new(GroupResource::new("", "services"), NAMESPACE, NAME, move |current| {
            service(current, first_ip, port().first()?.port())
        }),
        SystemObject::new(GroupResource::new("", "endpoints"), NAMESPACE, NAME, move |current| {
            endpoints(current, &external_addresses(&of_endpoints()))
        }),
        SystemObject::new(
            GroupResource::new("discovery.k8s.io", "endpointslices"),
            NAMESPACE,
            NAME,
            move |current| slice(current, &external_addresses(&of_slice())),
        ),
    ]
}

/// Returns the addresses by port, without loopback addresses, which neither kind of object may contain.
fn external_addresses(all: &BTreeSet<SocketAddr>) -> BTreeMap<u16, Vec<String>> {
    let mut ports = BTreeMap::<u16, Vec<String>>::new();
    for address in all.iter().filter(|address| !address.ip().is_loopback()) {
        ports.entry(address.port()).or_default().push(address.ip().to_string());
    }
    ports
}

fn new(group: &str, kind: &str) -> Object {
    Object::new(&GroupVersion::new(group, "v1").kind(kind))
}

fn range(current: Option<&Object>, ranges: &[String]) -> Option<Object> {
    current.is_none().then(|| {
        let mut object = new("networking.k8s.io", "ServiceCIDR");
        object.set(&["spec", "cidrs"], ranges);
        object
    })
}

fn with_ready_condition(current: Option<&Object>, now: &str) -> Option<Object> {
    let current = current?;
    let conditions = current.at(&["status", "conditions"]);
    let is_ready =
        conditions.items().any(|c| c.field("type").str() == "Ready" && c.field("status").str() == "True");
    if is_ready {
        return None;
    }
    let mut object = current.clone();
    let ready = ReadyCondition {
        r#type: "Ready",
        status: "True",
        last_transition_time: now,
        reason: "",
        message: "Kubernetes default Service CIDR is ready",
    };
    object.set(&["status", "conditions"], [ready]);
    Some(object)
}

fn service(current: Option<&Object>, first: IpAddr, port: u16) -> Option<Object> {
    let right = |object: &Object| {
        let ports = object.at(&["spec", "ports"]);
        ports.items().any(|p| {
            p.field("port").i64() == Some(SERVICE_PORT.into())
                && p.field("targetPort").i64() == Some(port.into())
        })
    };
    if current.is_some_and(right) {
        return None;
    }
    let mut object = current.cloned().unwrap_or_else(|| {
        let mut object = new("", "Service");
        object.set(&["metadata", "labels", "component"], "apiserver");
        object.set(&["metadata", "labels", "provider"], "kubernetes");
        object.set(&["spec", "clusterIP"], first.to_string());
        object.set(&["spec", "type"], "ClusterIP");
        object.set(&["spec", "sessionAffinity"], "None");
        object
    });
    object.set(&["spec", "ports"], Port::https(SERVICE_PORT, Some(port)));
    Some(object)
}

fn endpoints(current: Option<&Object>, reached: &BTreeMap<u16, Vec<String>>) -> Option<Object> {
    let subsets: Vec<Subset> = reached
        .iter()
        .map(|(port, ips)| Subset {
            addresses: ips.iter().map(|ip| Address { ip: ip.clone() }).collect(),
            ports: Port::https(*port, None),
        })
        .collect();
    if subsets.is_empty() {
        return None;
    }
    let mut object = current.cloned().unwrap_or_else(|| new("", "Endpoints"));
    // The slice is also created here, so that kube-controller-manager need not mirror these Endpoints.
    object.set(&["metadata", "labels", "endpointslice.kubernetes.io/skip-mirror"], "true");
    object.set(&["subsets"], subsets);
    (current != Some(&object)).then_some(object)
}

/// Returns the slice. A slice has one set of ports: it contains the facades that share the lowest port.
fn slice(current: Option<&Object>, reached: &BTreeMap<u16, Vec<String>>) -> Option<Object> {
    let (port, ips) = reached.first_key_value()?;
    let mut object = current.cloned().unwrap_or_else(|| {
        let mut object = new("discovery.k8s.io", "EndpointSlice");
        object.set(&["metadata", "labels", "kubernetes.io/service-name"], NAME);
        let is_v4 = ips.first().is_some_and(|ip| ip.parse::<Ipv4Addr>().is_ok());
        object.set(&["addressType"], if is_v4 { "IPv4" } else { "IPv6" });
        object
    });
    let endpoints: Vec<Endpoint> = ips
        .iter()
        .map(|ip| Endpoint { addresses: [ip.clone()], conditions: Conditions { ready: true } })
        .collect();
    object.set(&["endpoints"], endpoints);
    object.set(&["ports"], Port::https(*port, None));
    (current != Some(&object)).then_some(object)
}

/// Returns the address at which other hosts reach a listener (upstream's `ResolveBindAddress`): the bound address, or, if the
/// listener is bound to all addresses or to the loopback interface, the host's address on the default route.
#[must_use]
pub fn advertised_address(bound: SocketAddr) -> Option<SocketAddr> {
    if bound.ip().is_unspecified() {
        return host_address(bound);
    }
    if bound.ip().is_loopback() {
        return host_address(bound).or(Some(bound));
    }
    Some(bound)
}

/// Returns the host's address of the same family, with the port. No packet is sent.
fn host_address(bound: SocketAddr) -> Option<SocketAddr> {
    let (any, elsewhere) =
        if bound.is_ipv4() { ("0.0.0.0:0", "192.0.2.1:9") } else { ("[::]:0", "[2001:db8::1]:9") };
    let socket = std::net::UdpSocket::bind(any).ok()?;
    socket.connect(elsewhere).ok()?;
    Some(SocketAddr::new(socket.local_addr().ok()?.ip(), bound.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correct_objects_are_not_changed_and_a_moved_facade_updates_them() {
        let first = "10.0.0.1".parse().unwrap();
        let created = service(None, first, 6443).unwrap();
        assert_eq!(created.at(&["spec", "clusterIP"]).str(), "10.0.0.1");
        assert_eq!(service(Some(&created), first, 6443), None);
        assert!(service(Some(&created), first, 7443).is_some());
        let at = |all: &[&str]| external_addresses(&all.iter().map(|one| one.parse().unwrap()).collect());
        for reached in [endpoints, slice] {
            let created = reached(None, &at(&["192.0.2.7:6443"])).unwrap();
            assert_eq!(reached(Some(&created), &at(&["192.0.2.7:6443"])), None);
            let with_second = reached(Some(&created), &at(&["192.0.2.7:6443", "192.0.2.8:6443"])).unwrap();
            let text = String::from_utf8(with_second.to_json()).unwrap();
            assert!(text.contains("192.0.2.7") && text.contains("192.0.2.8"));
            let with_new_address = reached(Some(&with_second), &at(&["192.0.2.8:6443"])).unwrap();
            assert!(!String::from_utf8(with_new_address.to_json()).unwrap().contains("192.0.2.7"));
        }
        let ports = endpoints(None, &at(&["192.0.2.7:6443", "192.0.2.8:7443"])).unwrap();
        assert_eq!(ports.at(&["subsets"]).items().count(), 2);
    }

    #[test]
    fn loopback_addresses_are_not_published() {
        let at = |all: &str| external_addresses(&[all.parse().unwrap()].into());
        assert!(at("127.0.0.1:6443").is_empty());
        assert_eq!(endpoints(None, &at("127.0.0.1:6443")), None);
        assert_eq!(slice(None, &at("127.0.0.1:6443")), None);
        assert_eq!(at("192.0.2.7:6443").len(), 1);
    }

    #[test]
    fn the_range_is_reported_as_ready_once() {
        let created = range(None, &["10.0.0.0/16".to_owned()]).unwrap();
        assert_eq!(range(Some(&created), &[]), None);
        let reported = with_ready_condition(Some(&created), "2026-01-02T03:04:05Z").unwrap();
        assert_eq!(with_ready_condition(Some(&reported), "2026-01-02T03:04:06Z"), None);
    }

    #[test]
    fn the_host_address_replaces_unspecified_and_loopback_addresses() {
        let bound = "192.0.2.7:6443".parse().unwrap();
        assert_eq!(advertised_address(bound), Some(bound));
        let (all, loopback) = ("0.0.0.0:6443".parse().unwrap(), "127.0.0.1:6443".parse().unwrap());
        assert_eq!(advertised_address(loopback), advertised_address(all).or(Some(loopback)));
        assert!(advertised_address(loopback).is_some_and(|address| address.port() == 6443));
    }
}
