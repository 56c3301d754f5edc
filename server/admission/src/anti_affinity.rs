//! LimitPodHardAntiAffinityTopology: required pod anti-affinity may use the host name as its topology key only.
//!
//! Upstream rules: plugin/pkg/admission/antiaffinity.

use portico_machinery::{Object, Status};
use portico_registry::Objects;

use crate::plugin::{PODS, Plugin, ResourcePattern, ValidationFuture, ValidationRequest};

const HOSTNAME_KEY: &str = "kubernetes.io/hostname";

/// LimitPodHardAntiAffinityTopology plugin.
pub(crate) struct LimitPodHardAntiAffinityTopology;

impl Plugin for LimitPodHardAntiAffinityTopology {
    fn targets(&self) -> &'static [ResourcePattern] {
        PODS
    }

    fn validate<'a>(&'a self, _objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            let Some(key) = disallowed_topology_key(request.new) else { return Ok(Vec::new()) };
            let message = format!(
                "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {HOSTNAME_KEY} is allowed"
            );
            let resource = &request.attributes.served_resource.resource;
            Err(Box::new(Status::forbidden(resource, request.new.name(), &message)))
        })
    }
}

/// Returns the first topology key of a required anti-affinity term that is not the host name.
fn disallowed_topology_key(pod: &Object) -> Option<&str> {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = pod.at(&["spec", "affinity", "podAntiAffinity", required]);
    let mut keys = terms.items().map(|term| term.field("topologyKey").str());
    keys.find(|key| *key != HOSTNAME_KEY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hostname_is_allowed_as_a_topology_key() {
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
            assert_eq!(disallowed_topology_key(&pod), other, "{affinity}");
        }
    }
}
