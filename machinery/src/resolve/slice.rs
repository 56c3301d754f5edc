//! Facts of an EndpointSlice for resolution.

use std::net::IpAddr;

use crate::object::{Cursor, Object};
use crate::route::Target;

/// Label with the name of a slice's Service; a slice without it belongs to no Service.
pub const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";

/// `addressType` of a slice, or one of a Service's `ipFamilies`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressFamily {
    /// `IPv4`
    Ipv4,
    /// `IPv6`
    Ipv6,
    /// `FQDN`
    Fqdn,
}

impl AddressFamily {
    /// Parses the API value. Returns `None` if it is unknown.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "IPv4" => Some(Self::Ipv4),
            "IPv6" => Some(Self::Ipv6),
            "FQDN" => Some(Self::Fqdn),
            _ => None,
        }
    }

    pub(super) fn of(ip: IpAddr) -> Self {
        if ip.is_ipv6() { Self::Ipv6 } else { Self::Ipv4 }
    }

    /// Returns the sort key: 0 for the preferred family, the others in a fixed order.
    pub(super) fn rank(self, preferred: Option<Self>) -> usize {
        if Some(self) == preferred { 0 } else { 1 + self as usize }
    }
}

/// Facts of an EndpointSlice for resolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceFacts {
    /// Name of the slice, by which slices of one family are sorted.
    pub name: String,
    /// `addressType`
    pub family: AddressFamily,
    /// `ports`
    pub ports: Vec<SlicePort>,
    /// `endpoints` that have an address, in order.
    pub endpoints: Vec<EndpointFacts>,
}

/// Entry of a slice's `ports`. An unset name differs from the name `""`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlicePort {
    /// Name of the port, if set.
    pub name: Option<String>,
    /// Port number, if set.
    pub port: Option<u16>,
}

/// Endpoint of a slice, of which only the first address is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointFacts {
    /// First address of the endpoint.
    pub address: String,
    /// True unless the endpoint is explicitly not ready.
    pub ready: bool,
}

impl SliceFacts {
    /// Parses the facts of a slice, with the name of its Service. Returns `None` if it belongs to no Service.
    #[must_use]
    pub fn of(slice: &Object) -> Option<(String, Self)> {
        let service = slice.label(SERVICE_NAME_LABEL).filter(|name| !name.is_empty())?;
        let facts = Self {
            name: slice.name().to_owned(),
            family: AddressFamily::parse(slice.at(&["addressType"]).str()).unwrap_or(AddressFamily::Ipv4),
            ports: slice.at(&["ports"]).items().map(|p| port(&p)).collect(),
            endpoints: slice.at(&["endpoints"]).items().filter_map(|e| endpoint(&e)).collect(),
        };
        Some((service.to_owned(), facts))
    }

    /// Returns the ready addresses for the port with this name.
    pub(super) fn targets(&self, port_name: &str) -> impl Iterator<Item = Target> + '_ {
        let port = self.ports.iter().find_map(|p| p.port.filter(|_| p.name.as_deref() == Some(port_name)));
        port.into_iter().flat_map(|port| {
            let ready = self.endpoints.iter().filter(|e| e.ready);
            ready.map(move |e| Target { host: e.address.clone(), port })
        })
    }
}

fn port(cursor: &Cursor<'_>) -> SlicePort {
    SlicePort {
        name: cursor.field("name").opt_str().map(str::to_owned),
        port: cursor.field("port").i64().and_then(|p| u16::try_from(p).ok()),
    }
}

fn endpoint(cursor: &Cursor<'_>) -> Option<EndpointFacts> {
    let address = cursor.field("addresses").items().next()?.str().to_owned();
    Some(EndpointFacts {
        address,
        ready: cursor.field("conditions").field("ready").opt_bool().unwrap_or(true),
    })
}
