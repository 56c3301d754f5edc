//! EndpointSlices, as read and written by the controllers.

use std::collections::{BTreeMap, BTreeSet};

use portico_machinery::{GroupVersion, Object};
use portico_registry::StoredObject;
use serde::{Deserialize, Serialize};

use super::service::Service;

/// Label with the name of the Service of a slice.
pub const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// Label with the manager of a slice.
pub const MANAGED_BY_LABEL: &str = "endpointslice.kubernetes.io/managed-by";

/// A slice: the stored or new object, and the fields that controllers use.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// The object, whose other fields are preserved.
    pub object: Object,
    /// Name; empty for a new slice.
    pub name: String,
    /// Address type: `IPv4`, `IPv6` or `FQDN`.
    pub address_type: String,
    pub labels: BTreeMap<String, String>,
    pub ports: Vec<Port>,
    pub endpoints: Vec<Endpoint>,
}

/// A port of a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Port {
    /// Name, which may be empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i64>,
    /// Application protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
}

/// Ports without their order, for comparisons.
pub type PortSet = BTreeSet<Port>;

/// An endpoint of a slice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Endpoint {
    /// Addresses, all with the type of the slice.
    pub addresses: Vec<String>,
    pub conditions: Conditions,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Object that the endpoint represents, usually a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<TargetRef>,
    /// Topology in the deprecated form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated_topology: Option<BTreeMap<String, String>>,
    /// Name of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Zones and nodes that should use the endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<Hints>,
}

/// Conditions of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Conditions {
    /// True if clients should use the endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// True if the endpoint serves requests, even while it terminates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving: Option<bool>,
    /// True if the endpoint is terminating.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminating: Option<bool>,
}

/// Reference to the object that an endpoint represents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TargetRef {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Resource version, which comparisons ignore.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Part of the object that the reference means.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field_path: String,
}

/// Zones and nodes that should use an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Hints {
    /// Zones whose clients should use the endpoint.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub for_zones: Vec<HintTarget>,
    /// Nodes whose clients should use the endpoint.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub for_nodes: Vec<HintTarget>,
}

/// A zone or a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HintTarget {
    pub name: String,
}

/// Identity of an endpoint, which does not depend on its conditions (`hashEndpoint`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointKey {
    addresses: Vec<String>,
    hostname: String,
    namespace: String,
    name: String,
}

/// Endpoints by key.
pub type EndpointSet = BTreeMap<EndpointKey, Endpoint>;

impl TargetRef {
    /// Returns true if both refer to the same object, ignoring resource versions.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let stateless = |target: &Self| Self { resource_version: String::new(), ..target.clone() };
        stateless(self) == stateless(other)
    }
}

impl Endpoint {
    /// Returns the identity of the endpoint.
    #[must_use]
    pub fn key(&self) -> EndpointKey {
        let mut addresses = self.addresses.clone();
        addresses.sort_unstable();
        let target = self.target_ref.clone().unwrap_or_default();
        let hostname = self.hostname.clone().unwrap_or_default();
        EndpointKey { addresses, hostname, namespace: target.namespace, name: target.name }
    }

    /// Returns true if endpoints with the same key are equal (`EndpointsEqualBeyondHash`).
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

    /// Returns true if clients should use the endpoint.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.conditions.ready == Some(true)
    }
}

impl Slice {
    /// Decodes a stored slice.
    #[must_use]
    pub fn of_stored(stored: &StoredObject) -> Self {
        Self::of_object(stored.object().clone())
    }

    /// Decodes a slice. Fields that cannot be decoded are empty.
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

    /// Creates an empty slice that is owned by an object of the core group.
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

    /// Converts the slice to an object.
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

    /// Returns the ports as a set, for comparisons.
    #[must_use]
    pub fn port_set(&self) -> PortSet {
        self.ports.iter().cloned().collect()
    }

    /// Returns true if the slice belongs to this Service, rather than to a deleted one with the same name (`ownedBy`).
    #[must_use]
    pub fn is_owned_by(&self, service: &Service) -> bool {
        let owners = self.object.owner_references();
        owners.iter().any(|owner| {
            owner.uid == service.metadata.uid && owner.kind == "Service" && owner.api_version == "v1"
        })
    }
}

/// Owner of a slice.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// Kind: `Service` or `Endpoints`.
    pub kind: &'static str,
    pub namespace: &'a str,
    pub name: &'a str,
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

/// Returns the prefix of generated names (`getEndpointSlicePrefix`): with a dash if the length permits.
fn generate_name(owner: &str) -> String {
    const MAX_LENGTH: usize = 253;
    if owner.len() < MAX_LENGTH { format!("{owner}-") } else { owner.to_owned() }
}
