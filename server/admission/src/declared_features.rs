//! NodeDeclaredFeatureValidator: a running pod may change only in ways that the declared features of its node support.
//!
//! Upstream rules: plugin/pkg/admission/nodedeclaredfeatures, and the features of k8s.io/component-helpers/nodedeclaredfeatures
//! that an update may require.

use portico_machinery::Object;
use portico_registry::{Objects, Operation};
use portico_validation::pod_spec::is_sidecar;

use crate::plugin::{Plugin, ResourcePattern, ValidationFuture, ValidationRequest};
use crate::pod_resize::node_of_changed_pod;

/// Name of a feature, and a function that is true if a change from an old to a new pod requires the feature.
type FeatureCheck = (&'static str, fn(&Object, &Object) -> bool);

/// Features, sorted by name.
const FEATURES: [FeatureCheck; 2] = [
    ("InPlacePodLevelResourcesVerticalScaling", resizes_pod_level_resources),
    ("InPlacePodVerticalScalingInitContainers", resizes_init_containers),
];

/// NodeDeclaredFeatureValidator plugin.
pub(crate) struct NodeDeclaredFeatureValidator;

impl Plugin for NodeDeclaredFeatureValidator {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[("", "pods", ""), ("", "pods", "resize")]
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Update]
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            let (Some(name), Some(old)) = (node_of_changed_pod(&request), request.old) else {
                return Ok(Vec::new());
            };
            let mut needed = required_features(old, request.new);
            if needed.is_empty() {
                return Ok(Vec::new());
            }
            let Some(node) = objects.object_of("", "nodes", "", name).await? else {
                return Err(request.forbidden(&format!("node {name:?} not found")));
            };
            let declared = node.at(&["status", "declaredFeatures"]);
            needed.retain(|feature| !declared.items().any(|declared| declared.str() == *feature));
            if needed.is_empty() {
                return Ok(Vec::new());
            }
            let features = needed.join(", ");
            Err(request.forbidden(&format!(
                "pod update requires features {features} which are not available on node {name:?}"
            )))
        })
    }
}

/// Returns the names of the features that a change requires.
fn required_features(old: &Object, new: &Object) -> Vec<&'static str> {
    FEATURES.iter().filter(|(_, needs)| needs(old, new)).map(|(name, _)| *name).collect()
}

fn resizes_pod_level_resources(old: &Object, new: &Object) -> bool {
    !old.at(&["spec", "resources"]).same_as(&new.at(&["spec", "resources"]))
}

fn resizes_init_containers(old: &Object, new: &Object) -> bool {
    let (old, new) = (old.at(&["spec", "initContainers"]), new.at(&["spec", "initContainers"]));
    old.items()
        .zip(new.items())
        .any(|(old, new)| !is_sidecar(&old) && !old.field("resources").same_as(&new.field("resources")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_require_the_features_that_upstream_infers() {
        let spec = |spec: &str| Object::from_json(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap();
        let of_pod = r#"{"resources":{"requests":{"cpu":"1"}}}"#;
        let init = r#"{"initContainers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]}"#;
        let sidecar = r#"{"initContainers":[{"name":"a","restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}}]}"#;
        for (old, new, expected) in [
            ("{}", "{}", &[][..]),
            (of_pod, of_pod, &[]),
            (of_pod, "{}", &["InPlacePodLevelResourcesVerticalScaling"]),
            (init, init, &[]),
            (init, &init.replace('1', "2"), &["InPlacePodVerticalScalingInitContainers"]),
            (sidecar, &sidecar.replace('1', "2"), &[]),
        ] {
            assert_eq!(required_features(&spec(old), &spec(new)), expected, "{old} {new}");
        }
    }
}
