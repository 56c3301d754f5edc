//! LimitRanger: sets a namespace's defaults on containers, and enforces its limits on pods, containers and claims.
//!
//! Upstream rules: plugin/pkg/admission/limitranger. Defaults are set before a write is validated. Limits are checked after
//! validation, and every error of one LimitRange is reported.

mod constraints;

use portico_machinery::rbac::aggregate;
use portico_machinery::{Cursor, GroupResource, Object};

use crate::listing::list_all;
use crate::plugin::{
    MutationFuture, MutationRequest, Plugin, ResourcePattern, ValidationFuture, ValidationRequest,
};
use constraints::{CheckedAmounts, check};
use portico_registry::{Attributes, ObjectPart, Objects, Result};
use portico_validation::pod_spec::totals::{ResourceList, resource_list, spec_resources};

/// Annotation that lists the defaults that were set.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";
const RESIZE: ObjectPart<'static> = ObjectPart::Subresource("resize");

pub(super) struct LimitRanger;

impl Plugin for LimitRanger {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[("", "pods", ""), ("", "pods", "resize"), ("", "persistentvolumeclaims", "")]
    }

    fn mutate<'a>(&'a self, objects: &'a Objects, change: MutationRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async move {
            let is_pod = change.attributes.served_resource.resource.resource == "pods";
            if !is_pod || !limits_apply(is_pod, change.attributes.part, change.old) {
                return Ok(());
            }
            for range in ranges(objects, &change.attributes, change.new).await? {
                apply_defaults(change.new, &range);
            }
            Ok(())
        })
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            let write = request;
            let is_pod = request.attributes.served_resource.resource.resource == "pods";
            if limits_apply(is_pod, write.attributes.part, write.old) {
                for range in ranges(objects, &write.attributes, write.new).await? {
                    let errors = errors_of(&range, write.new, is_pod);
                    if !errors.is_empty() {
                        return Err(request.forbidden(&aggregate(&errors)));
                    }
                }
            }
            Ok(Vec::new())
        })
    }
}

/// True if limits apply: to pods on create and resize, to claims on every write, and never to objects that are being deleted.
fn limits_apply(is_pod: bool, part: ObjectPart<'_>, old: Option<&Object>) -> bool {
    let deleting = old.is_some_and(|old| old.deletion_timestamp().is_some());
    !deleting && (!is_pod || old.is_none() || part == RESIZE)
}

async fn ranges(objects: &Objects, attributes: &Attributes<'_>, new: &Object) -> Result<Vec<Object>> {
    let ranges = list_all(objects, Some(new.namespace()), &GroupResource::new("", "limitranges")).await?;
    ranges.complete(attributes)
}

/// Sets default requests and limits on containers, and lists them in an annotation.
fn apply_defaults(pod: &mut Object, range: &Object) {
    let (mut requests, mut limits) = (ResourceList::new(), ResourceList::new());
    for limit in range.at(&["spec", "limits"]).items().filter(|l| l.field("type").str() == "Container") {
        requests.extend(resource_list(&limit.field("defaultRequest")));
        limits.extend(resource_list(&limit.field("default")));
    }
    let mut notes = Vec::new();
    for (list, noun) in [("containers", "container"), ("initContainers", "init container")] {
        pod.edit_each(&["spec", list], |container| {
            let filled = [("limits", &limits), ("requests", &requests)]
                .map(|(list, defaults)| set_missing(container, list, defaults));
            let name = container.str_at("name").to_owned();
            let [limits, requests] = filled.map(|names| names.join(", "));
            for (names, list) in [(requests, "request"), (limits, "limit")] {
                if !names.is_empty() {
                    notes.push(format!("{names} {list} for {noun} {name}"));
                }
            }
        });
    }
    if !notes.is_empty() {
        let note = format!("LimitRanger plugin set: {}", notes.join("; "));
        pod.set(&["metadata", "annotations", ANNOTATION], note);
    }
}

/// Sets the missing resources of a list; returns their names.
fn set_missing(container: &mut Object, list: &str, defaults: &ResourceList) -> Vec<String> {
    let mut set = Vec::new();
    for (name, amount) in defaults {
        let path = ["resources", list, name];
        if !container.at(&["resources", list]).key(name).is_present() {
            container.set(&path, amount.to_string());
            set.push(name.clone());
        }
    }
    set
}

fn errors_of(range: &Object, object: &Object, is_pod: bool) -> Vec<String> {
    let (spec, mut errors) = (object.at(&["spec"]), Vec::new());
    for limit in range.at(&["spec", "limits"]).items() {
        match limit.field("type").str() {
            "Container" if is_pod => {
                for list in ["containers", "initContainers"] {
                    for container in spec.field(list).items() {
                        check(&limit, &container_amounts(&container.field("resources")), &mut errors);
                    }
                }
            }
            "Pod" if is_pod => {
                let is_summed = |name: &str| matches!(name, "cpu" | "memory");
                let [requests, limits] =
                    ["requests", "limits"].map(|list| spec_resources(&spec, list, is_summed));
                check(&limit, &CheckedAmounts { requests, limits: Some(limits) }, &mut errors);
            }
            "PersistentVolumeClaim" if !is_pod => {
                let requests = resource_list(&spec.field("resources").field("requests"));
                check(&limit, &CheckedAmounts { requests, limits: None }, &mut errors);
            }
            _ => {}
        }
    }
    errors
}

fn container_amounts(resources: &Cursor<'_>) -> CheckedAmounts {
    let [requests, limits] = ["requests", "limits"].map(|list| resource_list(&resources.field(list)));
    CheckedAmounts { requests, limits: Some(limits) }
}
