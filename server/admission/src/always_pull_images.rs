//! AlwaysPullImages: every container pulls its image, so that no pod can use an image that was fetched with
//! credentials of another.
//!
//! Upstream rules: plugin/pkg/admission/alwayspullimages.

use std::collections::BTreeSet;

use portico_machinery::status::Reason;
use portico_machinery::{Object, Status, aggregate};
use portico_registry::Objects;
use portico_validation::pod_spec::CONTAINER_LISTS;

use crate::plugin::{
    MutationFuture, MutationRequest, PODS, Plugin, ResourcePattern, ValidationFuture, ValidationRequest,
};

const ALWAYS: &str = "Always";

/// AlwaysPullImages plugin.
pub(crate) struct AlwaysPullImages;

impl Plugin for AlwaysPullImages {
    fn targets(&self) -> &'static [ResourcePattern] {
        PODS
    }

    fn mutate<'a>(&'a self, _objects: &'a Objects, request: MutationRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async move {
            if has_new_images(request.new, request.old) {
                pull_always(request.new);
            }
            Ok(())
        })
    }

    fn validate<'a>(&'a self, _objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            if !has_new_images(request.new, request.old) {
                return Ok(Vec::new());
            }
            let refusals: Vec<String> =
                errors(request.new).iter().map(|message| request.forbidden(message).message).collect();
            // Upstream returns an aggregate error here, which is not a Status.
            match refusals.as_slice() {
                [] => Ok(Vec::new()),
                _ => Err(Box::new(Status::failure(Reason::Unknown, aggregate(refusals)))),
            }
        })
    }
}

/// True if a pod is new or runs an image that it did not run before.
fn has_new_images(new: &Object, old: Option<&Object>) -> bool {
    old.is_none_or(|old| !images(new).is_subset(&images(old)))
}

fn images(pod: &Object) -> BTreeSet<&str> {
    let of_list = |list| pod.at(&["spec", list]).items().map(|container| container.field("image").str());
    CONTAINER_LISTS.into_iter().flat_map(of_list).collect()
}

fn pull_always(pod: &mut Object) {
    for list in CONTAINER_LISTS {
        pod.edit_each(&["spec", list], |container| container.set(&["imagePullPolicy"], ALWAYS));
    }
    pod.edit_each(&["spec", "volumes"], |volume| {
        if volume.at(&["image"]).is_present() {
            volume.set(&["image", "pullPolicy"], ALWAYS);
        }
    });
}

/// Returns the errors of a pod in which a later mutation changed the pull policy again.
fn errors(pod: &Object) -> Vec<String> {
    let mut errors = Vec::new();
    for list in CONTAINER_LISTS {
        for container in pod.at(&["spec", list]).items() {
            errors.extend(pull_policy_error(&container.field("imagePullPolicy")));
        }
    }
    for volume in pod.at(&["spec", "volumes"]).items() {
        let image = volume.field("image");
        if image.is_present() {
            errors.extend(pull_policy_error(&image.field("pullPolicy")));
        }
    }
    errors
}

fn pull_policy_error(policy: &portico_machinery::Cursor<'_>) -> Option<String> {
    let error = (policy.str() != ALWAYS).then(|| policy.not_supported(&[ALWAYS]))?;
    Some(format!("{}: {}", error.path, error.body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(spec: &str) -> Object {
        Object::from_json(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap()
    }

    #[test]
    fn every_image_is_pulled() {
        let mut pod =
            pod(r#"{"initContainers":[{"image":"a"}],"containers":[{"image":"b","imagePullPolicy":"Never"}],
                "volumes":[{"name":"x","image":{"reference":"c"}},{"name":"y","emptyDir":{}}]}"#);
        assert_eq!(
            errors(&pod),
            [
                "spec.initContainers[0].imagePullPolicy: Unsupported value: \"\": supported values: \"Always\"",
                "spec.containers[0].imagePullPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
                "spec.volumes[0].image.pullPolicy: Unsupported value: \"\": supported values: \"Always\"",
            ]
        );
        pull_always(&mut pod);
        assert_eq!(errors(&pod), [""; 0]);
        assert!(!pod.at(&["spec", "volumes"]).items().nth(1).unwrap().field("image").is_present());
    }

    #[test]
    fn a_pod_without_new_images_is_not_changed() {
        let old = pod(r#"{"containers":[{"image":"a"},{"image":"b"}]}"#);
        for (new, examined) in [
            (r#"{"containers":[{"image":"b"}]}"#, false),
            (r#"{"containers":[{"image":"a"},{"image":"b"}]}"#, false),
            (r#"{"containers":[{"image":"a"},{"image":"c"}]}"#, true),
            (r#"{"containers":[{"image":"a"}],"ephemeralContainers":[{"image":"c"}]}"#, true),
        ] {
            assert_eq!(has_new_images(&pod(new), Some(&old)), examined, "{new}");
        }
        assert!(has_new_images(&old, None));
    }
}
