//! Addresses and readiness of pods (`k8s.io/endpointslice/util/controller_utils.go`).

use std::net::IpAddr;

use serde::Deserialize;

use super::address;
use super::service::{Service, ServicePort, TargetPort};

/// Fields of a Pod that the endpoints controllers use.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    pub metadata: PodMetadata,
    pub spec: PodSpec,
    pub status: PodStatus,
}

/// Metadata of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodMetadata {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// Time of the deletion request; `None` if the pod is not being deleted.
    pub deletion_timestamp: Option<String>,
}

/// Spec of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// Node that the pod is bound to; empty before.
    pub node_name: String,
    pub hostname: String,
    /// Domain of the host name, which is the name of a Service.
    pub subdomain: String,
    pub containers: Vec<Container>,
    /// Init containers; sidecars among them keep running.
    pub init_containers: Vec<Container>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    pub ports: Vec<ContainerPort>,
    /// Restart policy; `Always` for sidecars.
    pub restart_policy: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerPort {
    pub name: String,
    pub protocol: String,
    pub container_port: i64,
}

/// Status of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// Phase: `Pending`, `Running`, `Succeeded` or `Failed`.
    pub phase: String,
    /// Primary address.
    #[serde(rename = "podIP")]
    pub pod_ip: String,
    /// Addresses of all families.
    #[serde(rename = "podIPs")]
    pub pod_ips: Vec<PodIp>,
    pub conditions: Vec<PodCondition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PodIp {
    pub ip: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodCondition {
    pub r#type: String,
    /// Status: `True`, `False` or `Unknown`.
    pub status: String,
    /// Time of the last change of the status.
    pub last_transition_time: Option<String>,
}

impl Pod {
    /// Returns true if the condition `Ready` is true.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready_condition().is_some_and(|condition| condition.status == "True")
    }

    /// Returns the time of the last change of readiness.
    #[must_use]
    pub fn ready_since(&self) -> Option<jiff::Timestamp> {
        portico_machinery::time::parse(self.ready_condition()?.last_transition_time.as_deref()?)
    }

    fn ready_condition(&self) -> Option<&PodCondition> {
        self.status.conditions.iter().find(|condition| condition.r#type == "Ready")
    }

    /// Returns true if the pod is being deleted.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    fn is_terminal(&self) -> bool {
        matches!(self.status.phase.as_str(), "Failed" | "Succeeded")
    }

    /// Returns true if the pod belongs in endpoints (`ShouldPodBeInEndpoints`).
    #[must_use]
    pub fn belongs_in_endpoints(&self, include_terminating: bool) -> bool {
        let has_address = !self.status.pod_ip.is_empty() || !self.status.pod_ips.is_empty();
        !self.is_terminal() && has_address && (include_terminating || !self.is_terminating())
    }

    /// Returns the addresses of one family.
    pub fn addresses(&self, wants_v6: bool) -> impl Iterator<Item = IpAddr> {
        let parsed = self.status.pod_ips.iter().filter_map(|pod_ip| address::parse(&pod_ip.ip));
        parsed.filter(move |ip| ip.is_ipv6() == wants_v6)
    }

    /// Returns the host name for endpoints of the Service; `None` if they do not include it (`ShouldSetHostname`).
    #[must_use]
    pub fn hostname_for(&self, service: &Service) -> Option<&str> {
        let spec = &self.spec;
        (!spec.hostname.is_empty() && spec.subdomain == service.metadata.name)
            .then_some(spec.hostname.as_str())
    }

    /// Returns the port number for a port of a Service; `None` if the pod has no port with the name (`FindPort`).
    #[must_use]
    pub fn find_port(&self, port: &ServicePort) -> Option<i64> {
        let name = match port.target_port.as_ref()? {
            TargetPort::Number(number) => return Some(*number),
            TargetPort::Name(name) => name,
        };
        let sidecars = self.spec.init_containers.iter().filter(|c| c.restart_policy == "Always");
        let ports = self.spec.containers.iter().chain(sidecars).flat_map(|container| &container.ports);
        let mut matching = ports.filter(|p| p.name == *name && p.protocol == port.protocol);
        matching.next().map(|p| p.container_port)
    }

    /// Returns true if a change of the pod may change endpoints (`podEndpointsChanged`).
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
    fn pods_without_addresses_and_terminated_pods_belong_in_no_endpoints() {
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
