//! What a Service says of the endpoints that it wants.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::address;

/// On EndpointSlices and Endpoints of Services without a cluster address.
pub const HEADLESS_LABEL: &str = "service.kubernetes.io/headless";

/// A Service, as far as endpoints are about it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Service {
    /// Who it is.
    pub metadata: ServiceMetadata,
    /// What it wants.
    pub spec: ServiceSpec,
}

/// Who a Service is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceMetadata {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its labels, which its endpoints carry.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Since when it is there.
    pub creation_timestamp: Option<String>,
    /// Since when it is being deleted.
    pub deletion_timestamp: Option<String>,
}

/// What a Service wants.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceSpec {
    /// `ClusterIP`, `NodePort`, `LoadBalancer`, `ExternalName`.
    pub r#type: String,
    /// Which pods; nothing when somebody else says where it is.
    pub selector: Option<BTreeMap<String, String>>,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// Its address; `None` for headless Services.
    #[serde(rename = "clusterIP")]
    pub cluster_ip: String,
    /// `IPv4`, `IPv6`, in order of preference.
    pub ip_families: Vec<String>,
    /// Whether pods count as ready from the start.
    pub publish_not_ready_addresses: bool,
    /// Which endpoints are preferred.
    pub traffic_distribution: Option<String>,
}

/// A port of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServicePort {
    /// Its name.
    pub name: String,
    /// Its protocol.
    pub protocol: String,
    /// What is spoken.
    pub app_protocol: Option<String>,
    /// Where it leads to in a pod.
    pub target_port: Option<TargetPort>,
}

/// The port of a pod, by number or by name.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum TargetPort {
    /// A number.
    Number(i64),
    /// The name of a container's port.
    Name(String),
}

impl Service {
    /// Whether controllers write where it is: it selects pods, and is no mere name for something elsewhere.
    #[must_use]
    pub fn selects_pods(&self) -> bool {
        self.spec.selector.is_some() && self.spec.r#type != "ExternalName"
    }

    /// Whether it has no cluster address (`!IsServiceIPSet`).
    #[must_use]
    pub fn is_headless(&self) -> bool {
        matches!(self.spec.cluster_ip.as_str(), "" | "None")
    }

    /// Whether it may have no ports, and endpoints all the same.
    #[must_use]
    pub fn may_lack_ports(&self) -> bool {
        self.spec.ports.is_empty() && self.spec.cluster_ip == "None"
    }

    /// The types of addresses that its slices have (`getAddressTypesForService`).
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

    /// Whether its Endpoints, which have one family only, are of IPv6 for a pod (`podToEndpointAddressForService`).
    #[must_use]
    pub fn wants_v6(&self, pod_ip: &str) -> bool {
        let is_v6 = |text: &str| address::parse(text).is_some_and(|ip| ip.is_ipv6());
        match self.spec.ip_families.first() {
            Some(family) => family == "IPv6",
            None if self.is_headless() => is_v6(pod_ip),
            None => is_v6(&self.spec.cluster_ip),
        }
    }

    /// Whether hints are by zones of nodes (`hintsEnabled`); the deprecated annotation wins.
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
