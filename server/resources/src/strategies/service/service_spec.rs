//! Facts of the spec of a Service.

use portico_machinery::{Cursor, Object};

/// Spec of a Service.
#[derive(Clone, Copy)]
pub(super) struct ServiceSpec<'a>(&'a Object);

impl<'a> ServiceSpec<'a> {
    pub(super) fn of(service: &'a Object) -> Self {
        Self(service)
    }

    pub(super) fn field(&self, name: &'a str) -> Cursor<'a> {
        self.0.at(&["spec", name])
    }

    pub(super) fn kind(&self) -> &'a str {
        self.field("type").str()
    }

    /// True if the type has an address.
    pub(super) fn needs_address(&self) -> bool {
        matches!(self.kind(), "ClusterIP" | "NodePort" | "LoadBalancer")
    }

    pub(super) fn is_external_name(&self) -> bool {
        self.kind() == "ExternalName"
    }

    /// True if no address is requested.
    pub(super) fn is_headless(&self) -> bool {
        self.field("clusterIP").str() == "None"
    }

    pub(super) fn has_selector(&self) -> bool {
        !self.field("selector").is_empty()
    }

    /// True if ports may have node ports.
    pub(super) fn is_node_port_type(&self) -> bool {
        matches!(self.kind(), "NodePort" | "LoadBalancer")
    }

    /// True if ports without a node port get one.
    pub(super) fn allocates_node_ports(&self) -> bool {
        match self.kind() {
            "NodePort" => true,
            "LoadBalancer" => self.field("allocateLoadBalancerNodePorts").opt_bool().unwrap_or(true),
            _ => false,
        }
    }

    /// True if load balancers check the health of nodes on a separate port.
    pub(super) fn needs_health_port(&self) -> bool {
        self.kind() == "LoadBalancer" && self.field("externalTrafficPolicy").str() == "Local"
    }

    /// True if the Service is reachable from outside of the cluster.
    pub(super) fn is_external(&self) -> bool {
        self.is_node_port_type() || (self.kind() == "ClusterIP" && !self.field("externalIPs").is_empty())
    }

    pub(super) fn addresses(&self) -> Vec<&'a str> {
        self.field("clusterIPs").items().map(|ip| ip.str()).collect()
    }

    pub(super) fn families(&self) -> Vec<&'a str> {
        self.field("ipFamilies").items().map(|family| family.str()).collect()
    }

    pub(super) fn policy(&self) -> &'a str {
        self.field("ipFamilyPolicy").str()
    }

    pub(super) fn ports(&self) -> impl Iterator<Item = Cursor<'a>> + use<'a> {
        self.field("ports").items()
    }

    /// Returns the node ports that are set, without the health check port.
    pub(super) fn node_ports(&self) -> Vec<i64> {
        self.ports().filter_map(|port| port.field("nodePort").i64()).filter(|port| *port != 0).collect()
    }

    pub(super) fn health_port(&self) -> i64 {
        self.field("healthCheckNodePort").i64().unwrap_or(0)
    }
}
