//! Fields of Services that determine their endpoints.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::address;

/// Label of EndpointSlices and Endpoints of Services without a cluster IP.
pub const HEADLESS_LABEL: &str = "service.kubernetes.io/headless";

/// Fields of a Service that the endpoints controllers use.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Service {
    pub metadata: ServiceMetadata,
    pub spec: ServiceSpec,
}

/// Metadata of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceMetadata {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// Labels, which are copied to the endpoints.
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub creation_timestamp: Option<String>,
    /// Time of the deletion request; `None` if the Service is not being deleted.
    pub deletion_timestamp: Option<String>,
}

/// Spec of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceSpec {
    /// Type: `ClusterIP`, `NodePort`, `LoadBalancer` or `ExternalName`.
    pub r#type: String,
    /// Selector of pods; `None` if users manage the endpoints.
    pub selector: Option<BTreeMap<String, String>>,
    pub ports: Vec<ServicePort>,
    /// Cluster IP; `None` (as text) for headless Services.
    #[serde(rename = "clusterIP")]
    pub cluster_ip: String,
    /// IP families in order of preference: `IPv4`, `IPv6`.
    pub ip_families: Vec<String>,
    /// True if pods are published before they are ready.
    pub publish_not_ready_addresses: bool,
    /// Preference for endpoints that are close to the client.
    pub traffic_distribution: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServicePort {
    pub name: String,
    pub protocol: String,
    /// Application protocol.
    pub app_protocol: Option<String>,
    /// Port of the pods.
    pub target_port: Option<TargetPort>,
}

/// Port of a pod, by number or name.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum TargetPort {
    /// Number of the port.
    Number(i64),
    /// Name of a container's port.
    Name(String),
}

impl Service {
    /// Returns true if controllers manage the endpoints: the Service has a selector and is not an external name.
    #[must_use]
    pub fn selects_pods(&self) -> bool {
        self.spec.selector.is_some() && self.spec.r#type != "ExternalName"
    }

    /// Returns true if the Service has no cluster IP (`!IsServiceIPSet`).
    #[must_use]
    pub fn is_headless(&self) -> bool {
        matches!(self.spec.cluster_ip.as_str(), "" | "None")
    }

    /// Returns true if the Service is headless without ports, in which case its endpoints have no ports either.
    #[must_use]
    pub fn may_lack_ports(&self) -> bool {
        self.spec.ports.is_empty() && self.spec.cluster_ip == "None"
    }

    /// Returns the address types of the slices (`getAddressTypesForService`).
    #[must_use]
    pub fn address_types(&self) -> Vec<&'static str> {
        let known = |family: &String| ["IPv4", "IPv6"].into_iter().find(|known| known == family);
        let mut families: Vec<&'static str> = self.spec.ip_families.iter().filter_map(known).collect();
        if families.is_empty() {
            families = match address::parse(&self.spec.cluster_ip) {
                Some(ip) if ip.is_ipv6() => vec!["IPv6"],
                Some(_) => vec!["IPv4"],
                None => vec!["IPv4", "IPv6"],
            };
        }
        families.sort_unstable();
        families.dedup();
        families
    }

    /// Returns true if the Endpoints, which have a single family, contain IPv6 addresses (`podToEndpointAddressForService`).
    #[must_use]
    pub fn wants_v6(&self, pod_ip: &str) -> bool {
        let is_v6 = |text: &str| address::parse(text).is_some_and(|ip| ip.is_ipv6());
        match self.spec.ip_families.first() {
            Some(family) => family == "IPv6",
            None if self.is_headless() => is_v6(pod_ip),
            None => is_v6(&self.spec.cluster_ip),
        }
    }

    /// Returns true if the Service requests hints by zones (`hintsEnabled`); the deprecated annotation takes precedence.
    #[must_use]
    pub fn wants_zone_hints(&self) -> bool {
        let annotations = &self.metadata.annotations;
        let mode = annotations
            .get("service.kubernetes.io/topology-aware-hints")
            .or_else(|| annotations.get("service.kubernetes.io/topology-mode"));
        mode.is_some_and(|mode| mode == "Auto" || mode == "auto")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_those_of_the_service_or_of_its_address() {
        let rows: [(&str, &[&str]); 5] = [
            (r#"{"ipFamilies":["IPv6","IPv4"],"clusterIP":"10.0.0.1"}"#, &["IPv4", "IPv6"]),
            (r#"{"ipFamilies":["IPv6"]}"#, &["IPv6"]),
            (r#"{"clusterIP":"fd00::1"}"#, &["IPv6"]),
            (r#"{"clusterIP":"10.0.0.1"}"#, &["IPv4"]),
            (r#"{"clusterIP":"None"}"#, &["IPv4", "IPv6"]),
        ];
        for (json, want) in rows {
            let service = Service { spec: serde_json::from_str(json).unwrap(), ..Service::default() };
            assert_eq!(service.address_types(), want, "{json}");
        }
    }
}
