//! LimitRanger: sets a namespace's defaults on containers, and enforces its limits on pods, containers and claims.
//!
//! Upstream rules: plugin/pkg/admission/limitranger. Defaults are set before a write is validated. Limits are checked after
//! validation, and every error of one LimitRange is reported.

mod constraints;

use portico_machinery::rbac::aggregate;
use portico_machinery::{Cursor, GroupResource, Object};

use crate::listing::all;
use crate::plugin::{Mutating, MutationRequest, Plugin, Target, Validating, ValidationRequest};
use constraints::{Constrained, check};
use portico_registry::{Attributes, Objects, Part, Result};
use portico_validation::pod_spec::totals::{Amounts, amounts, of_spec};

/// Annotation that lists the defaults that were set.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";
const RESIZE: Part<'static> = Part::Subresource("resize");

pub(super) struct LimitRanger;

impl Plugin for LimitRanger {
    fn targets(&self) -> &'static [Target] {
        &[("", "pods", ""), ("", "pods", "resize"), ("", "persistentvolumeclaims", "")]
    }

    fn mutate<'a>(&'a self, objects: &'a Objects, change: MutationRequest<'a>) -> Mutating<'a> {
        Box::pin(async move {
            let is_pod = change.attributes.served.resource.resource == "pods";
            if !is_pod || !concerns(is_pod, change.attributes.part, change.old) {
                return Ok(());
            }
            for range in ranges(objects, &change.attributes, change.new).await? {
                fill_in(change.new, &range);
            }
            Ok(())
        })
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> Validating<'a> {
        Box::pin(async move {
            let write = request;
            let is_pod = request.attributes.served.resource.resource == "pods";
            if concerns(is_pod, write.attributes.part, write.old) {
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
fn concerns(is_pod: bool, part: Part<'_>, old: Option<&Object>) -> bool {
    let deleting = old.is_some_and(|old| old.deletion_timestamp().is_some());
    !deleting && (!is_pod || old.is_none() || part == RESIZE)
}

async fn ranges(objects: &Objects, attributes: &Attributes<'_>, new: &Object) -> Result<Vec<Object>> {
    let ranges = all(objects, Some(new.namespace()), &GroupResource::new("", "limitranges")).await?;
    ranges.complete(attributes)
}

/// Sets default requests and limits on containers, and lists them in an annotation.
fn fill_in(pod: &mut Object, range: &Object) {
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    for limit in range.at(&["spec", "limits"]).items().filter(|l| l.field("type").str() == "Container") {
        requests.extend(amounts(&limit.field("defaultRequest")));
        limits.extend(amounts(&limit.field("default")));
    }
    let mut notes = Vec::new();
    for (list, word) in [("containers", "container"), ("initContainers", "init container")] {
        pod.edit_each(&["spec", list], |container| {
            let filled = [("limits", &limits), ("requests", &requests)]
                .map(|(list, of)| set_missing(container, list, of));
            let name = container.str_at("name").to_owned();
            let [limits, requests] = filled.map(|names| names.join(", "));
            for (names, list) in [(requests, "request"), (limits, "limit")] {
                if !names.is_empty() {
                    notes.push(format!("{names} {list} for {word} {name}"));
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
fn set_missing(container: &mut Object, list: &str, wanted: &Amounts) -> Vec<String> {
    let mut set = Vec::new();
    for (name, amount) in wanted {
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
                        check(&limit, &own(&container.field("resources")), &mut errors);
                    }
                }
            }
            "Pod" if is_pod => {
                let is_summed = |name: &str| matches!(name, "cpu" | "memory");
                let [requests, limits] = ["requests", "limits"].map(|list| of_spec(&spec, list, is_summed));
                check(&limit, &Constrained { requests, limits: Some(limits) }, &mut errors);
            }
            "PersistentVolumeClaim" if !is_pod => {
                let requests = amounts(&spec.field("resources").field("requests"));
                check(&limit, &Constrained { requests, limits: None }, &mut errors);
            }
            _ => {}
        }
    }
    errors
}

fn own(resources: &Cursor<'_>) -> Constrained {
    let [requests, limits] = ["requests", "limits"].map(|list| amounts(&resources.field(list)));
    Constrained { requests, limits: Some(limits) }
}
