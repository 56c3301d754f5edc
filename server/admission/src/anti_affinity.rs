//! LimitPodHardAntiAffinityTopology: required pod anti-affinity may use the host name as its topology key only.
//!
//! Upstream rules: plugin/pkg/admission/antiaffinity.

use portico_machinery::{Object, Status};
use portico_registry::Objects;

use crate::plugin::{PODS, Plugin, Target, Validating, ValidationRequest};

const HOST: &str = "kubernetes.io/hostname";

/// LimitPodHardAntiAffinityTopology plugin.
pub(crate) struct LimitPodHardAntiAffinityTopology;

impl Plugin for LimitPodHardAntiAffinityTopology {
    fn targets(&self) -> &'static [Target] {
        PODS
    }

    fn validate<'a>(&'a self, _objects: &'a Objects, request: ValidationRequest<'a>) -> Validating<'a> {
        Box::pin(async move {
            let Some(key) = other_topology(request.new) else { return Ok(Vec::new()) };
            let why = format!(
                "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {HOST} is allowed"
            );
            let resource = &request.attributes.served.resource;
            Err(Box::new(Status::forbidden(resource, request.new.name(), &why)))
        })
    }
}

/// Returns the first topology key of a required anti-affinity term that is not the host name.
fn other_topology(pod: &Object) -> Option<&str> {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = pod.at(&["spec", "affinity", "podAntiAffinity", required]);
    let mut keys = terms.items().map(|term| term.field("topologyKey").str());
    keys.find(|key| *key != HOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_may_be_insisted_on() {
        for (affinity, other) in [
            ("{}", None),
            (
                r#"{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"podAffinityTerm":{"topologyKey":"zone"}}]}}"#,
                None,
            ),
            (
                r#"{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone"}]}}"#,
                None,
            ),
            (
                r#"{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname"}]}}"#,
                None,
            ),
            (
                r#"{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname"},{"topologyKey":"zone"}]}}"#,
                Some("zone"),
            ),
            (
                r#"{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":""}]}}"#,
                Some(""),
            ),
        ] {
            let pod = format!(r#"{{"spec":{{"affinity":{affinity}}}}}"#);
            let pod = Object::from_json(pod.as_bytes()).unwrap();
            assert_eq!(other_topology(&pod), other, "{affinity}");
        }
    }
}
