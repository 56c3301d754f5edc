//! Facts of a Service for resolution.

use super::AddressFamily;
use crate::object::{Cursor, Object};

/// Facts of a Service for resolution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceFacts {
    /// `spec.type`
    pub kind: ServiceType,
    /// `spec.clusterIP`: an IP, `None` for a headless Service, empty if not assigned.
    pub cluster_ip: String,
    /// `spec.externalName`
    pub external_name: String,
    /// First of `spec.ipFamilies`, or the family of the cluster IP; `None` if neither is known.
    pub family: Option<AddressFamily>,
    /// `spec.ports`, in order.
    pub ports: Vec<ServicePort>,
}

/// Entry of `spec.ports`; ports out of range become 0 and match nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServicePort {
    /// Name of the port, empty if unset.
    pub name: String,
    /// Port number.
    pub port: u16,
}

/// `spec.type`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServiceType {
    /// `ClusterIP`, or unset.
    #[default]
    ClusterIp,
    /// `NodePort`
    NodePort,
    /// `LoadBalancer`
    LoadBalancer,
    /// `ExternalName`
    ExternalName,
    /// Any other value.
    Other(String),
}

impl ServiceType {
    fn parse(text: &str) -> Self {
        match text {
            "" | "ClusterIP" => Self::ClusterIp,
            "NodePort" => Self::NodePort,
            "LoadBalancer" => Self::LoadBalancer,
            "ExternalName" => Self::ExternalName,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Returns the value of `spec.type`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::ClusterIp => "ClusterIP",
            Self::NodePort => "NodePort",
            Self::LoadBalancer => "LoadBalancer",
            Self::ExternalName => "ExternalName",
            Self::Other(other) => other,
        }
    }

    /// True if Services of this type have a cluster IP.
    #[must_use]
    pub fn has_cluster_ip(&self) -> bool {
        matches!(self, Self::ClusterIp | Self::NodePort | Self::LoadBalancer)
    }
}

impl ServiceFacts {
    /// Parses the facts of a Service.
    #[must_use]
    pub fn of(service: &Object) -> Self {
        let spec = service.at(&["spec"]);
        let cluster_ip = spec.field("clusterIP").str().to_owned();
        let named = spec.field("ipFamilies").items().next().and_then(|c| AddressFamily::parse(c.str()));
        Self {
            kind: ServiceType::parse(spec.field("type").str()),
            family: named.or_else(|| cluster_ip.parse().ok().map(AddressFamily::of)),
            cluster_ip,
            external_name: spec.field("externalName").str().to_owned(),
            ports: spec.field("ports").items().map(|p| port(&p)).collect(),
        }
    }
}

fn port(cursor: &Cursor<'_>) -> ServicePort {
    ServicePort {
        name: cursor.field("name").str().to_owned(),
        port: cursor.field("port").i64().and_then(|p| u16::try_from(p).ok()).unwrap_or(0),
    }
}
