//! RuntimeClass: a pod gets the overhead and scheduling of its class, and webhooks cannot change the overhead.

use portico_machinery::{Cursor, Object};

use crate::plugin::{
    MutationFuture, MutationRequest, PODS, Plugin, ResourcePattern, ValidationFuture, ValidationRequest,
};
use portico_registry::{Objects, Operation, Result};

pub(super) struct RuntimeClass;

impl Plugin for RuntimeClass {
    fn targets(&self) -> &'static [ResourcePattern] {
        PODS
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Create]
    }

    fn mutate<'a>(&'a self, objects: &'a Objects, change: MutationRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async move {
            let class = class_of(objects, change.new).await?.map_err(|error| change.forbidden(&error))?;
            let pod_overhead = change.new.at(&["spec", "overhead"]);
            if let Some(message) =
                overhead_mismatch(&pod_overhead, &class).filter(|_| !pod_overhead.is_empty())
            {
                return Err(change.forbidden(message));
            }
            drop(pod_overhead);
            if let Some(node) = class.get(&["overhead", "podFixed"]) {
                change.new.put(&["spec", "overhead"], node);
            }
            schedule(change, &class)
        })
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            let class = class_of(objects, request.new).await?.map_err(|error| request.forbidden(&error))?;
            match overhead_mismatch(&request.new.at(&["spec", "overhead"]), &class) {
                Some(message) => Err(request.forbidden(message)),
                None => Ok(Vec::new()),
            }
        })
    }
}

/// Returns the class of a pod, an empty one if the pod names none; the inner error is the reason for a refusal.
async fn class_of(objects: &Objects, pod: &Object) -> Result<Result<Object, String>> {
    let name = pod.str_at("spec.runtimeClassName");
    if name.is_empty() {
        return Ok(Ok(Object::default()));
    }
    let class = objects.object_of("node.k8s.io", "runtimeclasses", "", name).await?;
    Ok(class.ok_or_else(|| format!("pod rejected: RuntimeClass {name:?} not found")))
}

/// Returns an error message if an overhead is not that of the class.
fn overhead_mismatch(pod_overhead: &Cursor<'_>, class: &Object) -> Option<&'static str> {
    if !class.at(&["overhead"]).is_present() {
        let message = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
        return pod_overhead.is_present().then_some(message);
    }
    let fixed = class.at(&["overhead", "podFixed"]);
    let is_same = pod_overhead.len() == fixed.len()
        && pod_overhead.entries().all(|(name, value)| fixed.field(name).quantity() == value.quantity());
    (!is_same).then_some("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
}

fn schedule(change: MutationRequest<'_>, class: &Object) -> Result<()> {
    for (key, value) in class.at(&["scheduling", "nodeSelector"]).entries() {
        let pod_value = change.new.at(&["spec", "nodeSelector"]).entry_str(key);
        if let Some(pod_value) = pod_value.filter(|own| *own != value.str()) {
            let message = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {pod_value}",
                value.str()
            );
            return Err(change.forbidden(&message));
        }
        change.new.set(&["spec", "nodeSelector", key], value.str());
    }
    let path = ["spec", "tolerations"];
    for toleration in class.at(&["scheduling", "tolerations"]).items() {
        let exists = change.new.at(&path).items().any(|existing| existing.same_as(&toleration));
        if let Some(node) = toleration.node().filter(|_| !exists) {
            change.new.push_node(&path, node);
        }
    }
    Ok(())
}
