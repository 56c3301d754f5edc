//! EndpointSlices as controllers read and write them.

use std::collections::{BTreeMap, BTreeSet};

use portico_machinery::{GroupVersion, Object};
use portico_registry::Stored;
use serde::{Deserialize, Serialize};

use super::service::Service;

/// Names the Service of a slice.
pub const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// Names who keeps a slice.
pub const MANAGED_BY_LABEL: &str = "endpointslice.kubernetes.io/managed-by";

/// A slice: the object as it is stored, or as it is to be, and what controllers look at.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// Everything else.
    pub object: Object,
    /// Its name; empty when it is not there yet.
    pub name: String,
    /// `IPv4`, `IPv6`, `FQDN`.
    pub address_type: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The ports of its endpoints.
    pub ports: Vec<Port>,
    /// Its endpoints.
    pub endpoints: Vec<Endpoint>,
}

/// A port, as slices write it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Port {
    /// Its name, which may be empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i64>,
    /// What is spoken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
}

/// What distinguishes sets of ports: their order does not.
pub type PortSet = BTreeSet<Port>;

/// An endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Endpoint {
    /// Its addresses, of one type.
    pub addresses: Vec<String>,
    /// Whether it serves.
    pub conditions: Conditions,
    /// Its host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<TargetRef>,
    /// Topology in the form of before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated_topology: Option<BTreeMap<String, String>>,
    /// Its node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Its zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Who is to use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<Hints>,
}

/// Whether an endpoint serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Conditions {
    /// Whether it is to be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Whether it answers, be it that it is going.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving: Option<bool>,
    /// Whether it is going.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminating: Option<bool>,
}

/// What an endpoint is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TargetRef {
    /// Its kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Its version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Its state, which no comparison minds.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// The part of it that is meant.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field_path: String,
}

/// Who is to use an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Hints {
    /// Who is in these zones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub for_zones: Vec<Named>,
    /// Who is on these nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub for_nodes: Vec<Named>,
}

/// A zone or a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Named {
    /// Its name.
    pub name: String,
}

/// What stays the same of an endpoint while its conditions change (`hashEndpoint`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointKey {
    addresses: Vec<String>,
    hostname: String,
    namespace: String,
    name: String,
}

/// Endpoints, each once.
pub type EndpointSet = BTreeMap<EndpointKey, Endpoint>;

impl TargetRef {
    /// Whether both are the same thing, in whatever state.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let stateless = |of: &Self| Self { resource_version: String::new(), ..of.clone() };
        stateless(self) == stateless(other)
    }
}

impl Endpoint {
    /// What stays the same of it.
    #[must_use]
    pub fn key(&self) -> EndpointKey {
        let mut addresses = self.addresses.clone();
        addresses.sort_unstable();
        let target = self.target_ref.clone().unwrap_or_default();
        let hostname = self.hostname.clone().unwrap_or_default();
        EndpointKey { addresses, hostname, namespace: target.namespace, name: target.name }
    }

    /// Whether endpoints of one key are equal besides (`EndpointsEqualBeyondHash`).
    #[must_use]
    pub fn equals_beyond_key(&self, other: &Self) -> bool {
        let same_target = match (&self.target_ref, &other.target_ref) {
            (Some(a), Some(b)) => a.is_same(b),
            (a, b) => a.is_none() && b.is_none(),
        };
        same_target
            && self.node_name == other.node_name
            && self.zone == other.zone
            && self.conditions == other.conditions
    }

    /// Whether it is to be used.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.conditions.ready == Some(true)
    }
}

impl Slice {
    /// A stored slice.
    #[must_use]
    pub fn of_stored(stored: &Stored) -> Self {
        Self::of_object(stored.object().clone())
    }

    /// A slice as it stands in an object; parts of another shape read as empty.
    #[must_use]
    pub fn of_object(object: Object) -> Self {
        Self {
            name: object.name().to_owned(),
            address_type: object.str_at("addressType").to_owned(),
            labels: object.labels(),
            ports: object.decode(&["ports"]).unwrap_or_default(),
            endpoints: object.decode(&["endpoints"]).unwrap_or_default(),
            object,
        }
    }

    /// An empty slice to be made, owned by an object of the core group.
    #[must_use]
    pub fn new(owner: &Owner<'_>, address_type: &str, ports: Vec<Port>) -> Self {
        let mut object = Object::new(&GroupVersion::new("discovery.k8s.io", "v1").kind("EndpointSlice"));
        object.set(&["metadata", "generateName"], generate_name(owner.name));
        object.set(&["metadata", "namespace"], owner.namespace);
        object.set(&["metadata", "ownerReferences"], [OwnerRef::of(owner)]);
        object.set(&["addressType"], address_type);
        let address_type = address_type.to_owned();
        Self { object, address_type, ports, ..Self::default() }
    }

    /// The object of this slice.
    #[must_use]
    pub fn into_object(self) -> Object {
        let mut object = self.object;
        if !self.name.is_empty() {
            object.set(&["metadata", "name"], self.name);
        }
        object.set(&["metadata", "labels"], self.labels);
        object.set(&["endpoints"], self.endpoints);
        object.set(&["ports"], self.ports);
        object
    }

    /// Its ports, as they are compared.
    #[must_use]
    pub fn port_set(&self) -> PortSet {
        self.ports.iter().cloned().collect()
    }

    /// Whether it belongs to this Service, not to one of the same name that is gone (`ownedBy`).
    #[must_use]
    pub fn is_owned_by(&self, service: &Service) -> bool {
        let owners = self.object.owner_references();
        owners.iter().any(|owner| {
            owner.uid == service.metadata.uid && owner.kind == "Service" && owner.api_version == "v1"
        })
    }
}

/// What owns a slice.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// `Service` or `Endpoints`.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OwnerRef<'a> {
    api_version: &'static str,
    kind: &'static str,
    name: &'a str,
    uid: &'a str,
    controller: bool,
    block_owner_deletion: bool,
}

impl<'a> OwnerRef<'a> {
    fn of(owner: &Owner<'a>) -> Self {
        let Owner { kind, name, uid, .. } = *owner;
        Self { api_version: "v1", kind, name, uid, controller: true, block_owner_deletion: true }
    }
}

/// What names of slices begin with (`getEndpointSlicePrefix`): a dash where there is room for it.
fn generate_name(owner: &str) -> String {
    const LONGEST: usize = 253;
    if owner.len() < LONGEST { format!("{owner}-") } else { owner.to_owned() }
}
