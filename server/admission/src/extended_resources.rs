//! ExtendedResourceToleration: a pod that requests an extended resource tolerates the taint of the nodes that provide it.
//!
//! Upstream rules: plugin/pkg/admission/extendedresourcetoleration.

use std::collections::BTreeSet;

use portico_machinery::Object;
use portico_registry::Objects;
use portico_validation::pod_spec::is_extended;

use crate::plugin::{Mutating, MutationRequest, PODS, Plugin, Target};

const LIST: [&str; 2] = ["spec", "tolerations"];

/// ExtendedResourceToleration plugin.
pub(crate) struct ExtendedResourceToleration;

impl Plugin for ExtendedResourceToleration {
    fn targets(&self) -> &'static [Target] {
        PODS
    }

    fn mutate<'a>(&'a self, _objects: &'a Objects, request: MutationRequest<'a>) -> Mutating<'a> {
        Box::pin(async move {
            for resource in extended(request.new) {
                tolerate(request.new, &resource);
            }
            Ok(())
        })
    }
}

/// Returns the extended resources that a pod requests.
fn extended(pod: &Object) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for list in ["containers", "initContainers"] {
        for container in pod.at(&["spec", list]).items() {
            let requests = container.field("resources").field("requests");
            names.extend(
                requests.entries().map(|(name, _)| name).filter(|name| is_extended(name)).map(str::to_owned),
            );
        }
    }
    names
}

/// Adds a toleration, or replaces the existing ones for the same taint (upstream's `AddOrUpdateTolerationInPod`).
fn tolerate(pod: &mut Object, key: &str) {
    let mut wanted = Object::default();
    wanted.set(&["key"], key);
    wanted.set(&["operator"], "Exists");
    wanted.set(&["effect"], "NoSchedule");
    let matches = |own: &Object| {
        own.str_at("key") == key
            && own.str_at("effect") == "NoSchedule"
            && own.str_at("operator") == "Exists"
            && own.str_at("value").is_empty()
    };
    let mut found = false;
    pod.edit_each(&LIST, |own| {
        if matches(own) {
            found = true;
            own.clone_from(&wanted);
        }
    });
    if !found {
        pod.push_node(&LIST, wanted.into_node());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_tolerates_the_taints_of_what_it_asks_for_once() {
        let mut pod = Object::from_json(
            br#"{"spec":{
                "initContainers":[{"resources":{"requests":{"example.com/b":"1"}}}],
                "containers":[{"resources":{"requests":{"example.com/a":"1","cpu":"1","requests.x.io/y":"1","x.kubernetes.io/z":"1"}}}],
                "tolerations":[{"key":"example.com/a","operator":"Exists","effect":"NoSchedule","tolerationSeconds":3},
                               {"key":"example.com/b","operator":"Exists","effect":"NoExecute"}]}}"#,
        )
        .unwrap();
        assert_eq!(Vec::from_iter(extended(&pod)), ["example.com/a", "example.com/b"]);
        for resource in extended(&pod) {
            tolerate(&mut pod, &resource);
        }
        let want = r#"[{"key":"example.com/a","operator":"Exists","effect":"NoSchedule"},{"key":"example.com/b","operator":"Exists","effect":"NoExecute"},{"key":"example.com/b","operator":"Exists","effect":"NoSchedule"}]"#;
        assert_eq!(pod.at(&LIST).json(), want);
    }
}
