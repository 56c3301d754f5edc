//! How workloads find this API: the ServiceCIDR `kubernetes`, the Service `default/kubernetes`, its Endpoints and its
//! EndpointSlice.

use std::net::{IpAddr, SocketAddr};

use jiff::Timestamp;
use portico_machinery::{GroupResource, GroupVersion, Object, time};
use serde::Serialize;
use tokio::sync::watch;

use super::SystemObject;

const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";
/// The port of the Service.
pub const SERVICE_PORT: u16 = 443;

/// A port, as Services and slices write it.
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

/// What Endpoints hold: the one address and the one port.
#[derive(Serialize)]
struct Subset {
    addresses: [Address; 1],
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
struct Ready<'a> {
    r#type: &'static str,
    status: &'static str,
    last_transition_time: &'a str,
    reason: &'static str,
    message: &'static str,
}

/// The objects: the ranges of cluster addresses (the Service gets the first one's first address), and where the facade
/// is reached, once that is known.
#[must_use]
pub fn objects(
    ranges: &[String],
    first: IpAddr,
    reached: watch::Receiver<Option<SocketAddr>>,
) -> Vec<SystemObject> {
    let (ranges, port, of_endpoints, of_slice) = (ranges.to_vec(), reached.clone(), reached.clone(), reached);
    vec![
        SystemObject::new(
            GroupResource::new("networking.k8s.io", "servicecidrs"),
            "",
            NAME,
            move |current| range(current, &ranges),
        )
        .with_status(|current| ready(current, &time::rfc3339(Timestamp::now()))),
        SystemObject::new(GroupResource::new("", "services"), NAMESPACE, NAME, move |current| {
            let address = *port.borrow();
            service(current, first, address?.port())
        }),
        SystemObject::new(GroupResource::new("", "endpoints"), NAMESPACE, NAME, move |current| {
            endpoints(current, elsewhere(*of_endpoints.borrow())?)
        }),
        SystemObject::new(
            GroupResource::new("discovery.k8s.io", "endpointslices"),
            NAMESPACE,
            NAME,
            move |current| slice(current, elsewhere(*of_slice.borrow())?),
        ),
    ]
}

/// The address, if others could use it: neither kind of object may name the loopback interface.
fn elsewhere(address: Option<SocketAddr>) -> Option<SocketAddr> {
    address.filter(|address| !address.ip().is_loopback())
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

fn ready(current: Option<&Object>, now: &str) -> Option<Object> {
    let current = current?;
    let conditions = current.at(&["status", "conditions"]);
    let is_ready =
        conditions.items().any(|c| c.field("type").str() == "Ready" && c.field("status").str() == "True");
    if is_ready {
        return None;
    }
    let mut object = current.clone();
    let ready = Ready {
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

fn endpoints(current: Option<&Object>, address: SocketAddr) -> Option<Object> {
    let ip = address.ip().to_string();
    let right = |object: &Object| {
        object.at(&["subsets"]).items().any(|subset| {
            subset.field("addresses").items().any(|a| a.field("ip").str() == ip)
                && subset.field("ports").items().any(|p| p.field("port").i64() == Some(address.port().into()))
        })
    };
    if current.is_some_and(right) {
        return None;
    }
    let mut object = current.cloned().unwrap_or_else(|| new("", "Endpoints"));
    // The slice below is made here, too: kube-controller-manager need not mirror these.
    object.set(&["metadata", "labels", "endpointslice.kubernetes.io/skip-mirror"], "true");
    let ports = Port::https(address.port(), None);
    object.set(&["subsets"], [Subset { addresses: [Address { ip }], ports }]);
    Some(object)
}

fn slice(current: Option<&Object>, address: SocketAddr) -> Option<Object> {
    let ip = address.ip().to_string();
    let right = |object: &Object| {
        let addresses = object.at(&["endpoints"]);
        addresses.items().any(|e| e.field("addresses").items().any(|a| a.str() == ip))
            && object.at(&["ports"]).items().any(|p| p.field("port").i64() == Some(address.port().into()))
    };
    if current.is_some_and(right) {
        return None;
    }
    let mut object = current.cloned().unwrap_or_else(|| {
        let mut object = new("discovery.k8s.io", "EndpointSlice");
        object.set(&["metadata", "labels", "kubernetes.io/service-name"], NAME);
        object.set(&["addressType"], if address.is_ipv4() { "IPv4" } else { "IPv6" });
        object
    });
    object.set(&["endpoints"], [Endpoint { addresses: [ip], conditions: Conditions { ready: true } }]);
    object.set(&["ports"], Port::https(address.port(), None));
    Some(object)
}

/// Where others reach a listener that was bound here (upstream's `ResolveBindAddress`): its own address, or, when it is
/// bound to all of them or to the loopback interface, the host's: the one that packets to the world leave from.
#[must_use]
pub fn reachable(bound: SocketAddr) -> Option<SocketAddr> {
    if bound.ip().is_unspecified() {
        return of_host(bound);
    }
    if bound.ip().is_loopback() {
        return of_host(bound).or(Some(bound));
    }
    Some(bound)
}

/// The host's address of the same family, and the port. Nothing is sent.
fn of_host(bound: SocketAddr) -> Option<SocketAddr> {
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
    fn what_is_right_is_left_alone_and_a_moved_facade_is_followed() {
        let (first, here) = ("10.0.0.1".parse().unwrap(), "192.0.2.7:6443".parse().unwrap());
        let made = service(None, first, 6443).unwrap();
        assert_eq!(made.at(&["spec", "clusterIP"]).str(), "10.0.0.1");
        assert_eq!(service(Some(&made), first, 6443), None);
        assert!(service(Some(&made), first, 7443).is_some());
        let there = "192.0.2.8:6443".parse().unwrap();
        for reached in [endpoints, slice] {
            let made = reached(None, here).unwrap();
            assert_eq!(reached(Some(&made), here), None);
            let moved = reached(Some(&made), there).unwrap();
            assert!(String::from_utf8(moved.to_json()).unwrap().contains("192.0.2.8"));
        }
    }

    #[test]
    fn the_loopback_interface_leads_nobody_here() {
        assert_eq!(elsewhere("127.0.0.1:6443".parse().ok()), None);
        assert!(elsewhere("192.0.2.7:6443".parse().ok()).is_some());
    }

    #[test]
    fn the_range_is_ready_once() {
        let made = range(None, &["10.0.0.0/16".to_owned()]).unwrap();
        assert_eq!(range(Some(&made), &[]), None);
        let reported = ready(Some(&made), "2026-01-02T03:04:05Z").unwrap();
        assert_eq!(ready(Some(&reported), "2026-01-02T03:04:06Z"), None);
    }

    #[test]
    fn the_address_of_the_host_stands_for_all_addresses_and_for_the_loopback_interface() {
        let bound = "192.0.2.7:6443".parse().unwrap();
        assert_eq!(reachable(bound), Some(bound));
        let (all, loopback) = ("0.0.0.0:6443".parse().unwrap(), "127.0.0.1:6443".parse().unwrap());
        assert_eq!(reachable(loopback), reachable(all).or(Some(loopback)));
        assert!(reachable(loopback).is_some_and(|address| address.port() == 6443));
    }
}
