//! What a pod says of where it is and whether it serves (`k8s.io/endpointslice/util/controller_utils.go`).

use std::net::IpAddr;

use serde::Deserialize;

use super::address;
use super::service::{Service, ServicePort, TargetPort};

/// A pod, as far as endpoints are about it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Who it is.
    pub metadata: PodMetadata,
    /// What was asked for.
    pub spec: PodSpec,
    /// What is.
    pub status: PodStatus,
}

/// Who a pod is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodMetadata {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Since when it is being deleted.
    pub deletion_timestamp: Option<String>,
}

/// What was asked for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// The node that it is bound to, empty before.
    pub node_name: String,
    /// Its host name.
    pub hostname: String,
    /// The domain of its host name: the name of a Service.
    pub subdomain: String,
    /// Its containers.
    pub containers: Vec<Container>,
    /// Containers that run before those; sidecars among them go on.
    pub init_containers: Vec<Container>,
}

/// A container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// Its ports.
    pub ports: Vec<ContainerPort>,
    /// `Always` for sidecars.
    pub restart_policy: String,
}

/// A port of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerPort {
    /// Its name.
    pub name: String,
    /// Its protocol.
    pub protocol: String,
    /// Its number.
    pub container_port: i64,
}

/// What is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed`.
    pub phase: String,
    /// Its first address.
    #[serde(rename = "podIP")]
    pub pod_ip: String,
    /// Its addresses.
    #[serde(rename = "podIPs")]
    pub pod_ips: Vec<PodIp>,
    /// Its conditions.
    pub conditions: Vec<PodCondition>,
}

/// An address of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PodIp {
    /// The address.
    pub ip: String,
}

/// A condition of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodCondition {
    /// Its type.
    pub r#type: String,
    /// `True`, `False`, `Unknown`.
    pub status: String,
    /// When the status changed.
    pub last_transition_time: Option<String>,
}

impl Pod {
    /// Whether its `Ready` condition is true.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready_condition().is_some_and(|condition| condition.status == "True")
    }

    /// When its readiness changed.
    #[must_use]
    pub fn ready_since(&self) -> Option<jiff::Timestamp> {
        portico_machinery::time::parse(self.ready_condition()?.last_transition_time.as_deref()?)
    }

    fn ready_condition(&self) -> Option<&PodCondition> {
        self.status.conditions.iter().find(|condition| condition.r#type == "Ready")
    }

    /// Whether it is being deleted.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    fn is_terminal(&self) -> bool {
        matches!(self.status.phase.as_str(), "Failed" | "Succeeded")
    }

    /// Whether endpoints name it (`ShouldPodBeInEndpoints`).
    #[must_use]
    pub fn belongs_in_endpoints(&self, include_terminating: bool) -> bool {
        let has_address = !self.status.pod_ip.is_empty() || !self.status.pod_ips.is_empty();
        !self.is_terminal() && has_address && (include_terminating || !self.is_terminating())
    }

    /// Its addresses of a family.
    pub fn addresses(&self, wants_v6: bool) -> impl Iterator<Item = IpAddr> {
        let parsed = self.status.pod_ips.iter().filter_map(|pod_ip| address::parse(&pod_ip.ip));
        parsed.filter(move |ip| ip.is_ipv6() == wants_v6)
    }

    /// Its host name, where endpoints of the Service have it (`ShouldSetHostname`).
    #[must_use]
    pub fn hostname_for(&self, service: &Service) -> Option<&str> {
        let spec = &self.spec;
        (!spec.hostname.is_empty() && spec.subdomain == service.metadata.name)
            .then_some(spec.hostname.as_str())
    }

    /// The number of the port that a Service's port leads to; nothing when the pod has no port of that name (`FindPort`).
    #[must_use]
    pub fn find_port(&self, port: &ServicePort) -> Option<i64> {
        let name = match port.target_port.as_ref()? {
            TargetPort::Number(number) => return Some(*number),
            TargetPort::Name(name) => name,
        };
        let sidecars = self.spec.init_containers.iter().filter(|c| c.restart_policy == "Always");
        let ports = self.spec.containers.iter().chain(sidecars).flat_map(|container| &container.ports);
        let mut named = ports.filter(|p| p.name == *name && p.protocol == port.protocol);
        named.next().map(|p| p.container_port)
    }

    /// Whether a change of the pod may change endpoints that name it (`podEndpointsChanged`).
    #[must_use]
    pub fn differs_from(&self, before: &Self) -> bool {
        self.metadata.deletion_timestamp != before.metadata.deletion_timestamp
            || self.is_ready() != before.is_ready()
            || self.is_terminal() != before.is_terminal()
            || self.status.pod_ips != before.status.pod_ips
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(json: &str) -> Pod {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn ports_are_found_by_name_and_protocol_in_containers_and_sidecars() {
        let pod = pod(r#"{"spec":{
            "containers":[{"ports":[{"name":"web","protocol":"UDP","containerPort":1}]},
                {"ports":[{"name":"web","protocol":"TCP","containerPort":2}]}],
            "initContainers":[{"ports":[{"name":"once","protocol":"TCP","containerPort":3}]},
                {"restartPolicy":"Always","ports":[{"name":"side","protocol":"TCP","containerPort":4}]}]}}"#);
        let found = |target: &str| {
            let port = format!(r#"{{"protocol":"TCP","targetPort":{target}}}"#);
            pod.find_port(&serde_json::from_str(&port).unwrap())
        };
        assert_eq!(found("8080"), Some(8080));
        assert_eq!(found(r#""web""#), Some(2));
        assert_eq!(found(r#""side""#), Some(4));
        assert_eq!((found(r#""once""#), found(r#""none""#)), (None, None));
    }

    #[test]
    fn pods_without_addresses_and_those_that_have_ended_belong_in_no_endpoints() {
        let rows = [
            (r#"{"status":{"podIP":"1.1.1.1"}}"#, true, true),
            (r#"{"status":{"podIPs":[{"ip":"1.1.1.1"}]}}"#, true, true),
            (r#"{"status":{}}"#, false, false),
            (r#"{"status":{"podIP":"1.1.1.1","phase":"Failed"}}"#, false, false),
            (r#"{"status":{"podIP":"1.1.1.1","phase":"Succeeded"}}"#, false, false),
            (
                r#"{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{"podIP":"1.1.1.1"}}"#,
                false,
                true,
            ),
        ];
        for (json, want, with_terminating) in rows {
            let pod = pod(json);
            let found = (pod.belongs_in_endpoints(false), pod.belongs_in_endpoints(true));
            assert_eq!(found, (want, with_terminating), "{json}");
        }
    }
}
