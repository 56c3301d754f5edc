//! ExtendedResourceToleration: a pod that requests an extended resource tolerates the taint of the nodes that provide it.
//!
//! Upstream rules: plugin/pkg/admission/extendedresourcetoleration.

use std::collections::BTreeSet;

use portico_machinery::Object;
use portico_registry::Objects;
use portico_validation::pod_spec::is_extended_resource;

use crate::plugin::{MutationFuture, MutationRequest, PODS, Plugin, ResourcePattern};

const TOLERATIONS_PATH: [&str; 2] = ["spec", "tolerations"];

/// ExtendedResourceToleration plugin.
pub(crate) struct ExtendedResourceToleration;

impl Plugin for ExtendedResourceToleration {
    fn targets(&self) -> &'static [ResourcePattern] {
        PODS
    }

    fn mutate<'a>(&'a self, _objects: &'a Objects, request: MutationRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async move {
            for resource in requested_extended_resources(request.new) {
                add_toleration(request.new, &resource);
            }
            Ok(())
        })
    }
}

/// Returns the extended resources that a pod requests.
fn requested_extended_resources(pod: &Object) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for list in ["containers", "initContainers"] {
        for container in pod.at(&["spec", list]).items() {
            let requests = container.field("resources").field("requests");
            names.extend(
                requests
                    .entries()
                    .map(|(name, _)| name)
                    .filter(|name| is_extended_resource(name))
                    .map(str::to_owned),
            );
        }
    }
    names
}

/// Adds a toleration, or replaces the existing ones for the same taint (upstream's `AddOrUpdateTolerationInPod`).
fn add_toleration(pod: &mut Object, key: &str) {
    let mut toleration = Object::default();
    toleration.set(&["key"], key);
    toleration.set(&["operator"], "Exists");
    toleration.set(&["effect"], "NoSchedule");
    let matches = |existing: &Object| {
        existing.str_at("key") == key
            && existing.str_at("effect") == "NoSchedule"
            && existing.str_at("operator") == "Exists"
            && existing.str_at("value").is_empty()
    };
    let mut found = false;
    pod.edit_each(&TOLERATIONS_PATH, |existing| {
        if matches(existing) {
            found = true;
            existing.clone_from(&toleration);
        }
    });
    if !found {
        pod.push_node(&TOLERATIONS_PATH, toleration.into_node());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_gets_one_toleration_per_extended_resource() {
        let mut pod = Object::from_json(
            br#"{"spec":{
                "initContainers":[{"resources":{"requests":{"example.com/b":"1"}}}],
                "containers":[{"resources":{"requests":{"example.com/a":"1","cpu":"1","requests.x.io/y":"1","x.kubernetes.io/z":"1"}}}],
                "tolerations":[{"key":"example.com/a","operator":"Exists","effect":"NoSchedule","tolerationSeconds":3},
                               {"key":"example.com/b","operator":"Exists","effect":"NoExecute"}]}}"#,
        )
        .unwrap();
        assert_eq!(Vec::from_iter(requested_extended_resources(&pod)), ["example.com/a", "example.com/b"]);
        for resource in requested_extended_resources(&pod) {
            add_toleration(&mut pod, &resource);
        }
        let expected = r#"[{"key":"example.com/a","operator":"Exists","effect":"NoSchedule"},{"key":"example.com/b","operator":"Exists","effect":"NoExecute"},{"key":"example.com/b","operator":"Exists","effect":"NoSchedule"}]"#;
        assert_eq!(pod.at(&TOLERATIONS_PATH).json(), expected);
    }
}
