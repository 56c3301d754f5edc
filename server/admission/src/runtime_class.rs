//! RuntimeClass: a pod gets the overhead and scheduling of its class, and webhooks cannot change the overhead.

use portico_machinery::{Cursor, Object};

use crate::plugin::{Mutating, MutationRequest, PODS, Plugin, Target, Validating, ValidationRequest};
use portico_registry::{Objects, Operation, Result};

pub(super) struct RuntimeClass;

impl Plugin for RuntimeClass {
    fn targets(&self) -> &'static [Target] {
        PODS
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Create]
    }

    fn mutate<'a>(&'a self, objects: &'a Objects, change: MutationRequest<'a>) -> Mutating<'a> {
        Box::pin(async move {
            let class = class_of(objects, change.new).await?.map_err(|why| change.forbidden(&why))?;
            let own = change.new.at(&["spec", "overhead"]);
            if let Some(why) = misfit(&own, &class).filter(|_| !own.is_empty()) {
                return Err(change.forbidden(why));
            }
            drop(own);
            if let Some(node) = class.get(&["overhead", "podFixed"]) {
                change.new.put(&["spec", "overhead"], node);
            }
            schedule(change, &class)
        })
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> Validating<'a> {
        Box::pin(async move {
            let class = class_of(objects, request.new).await?.map_err(|why| request.forbidden(&why))?;
            match misfit(&request.new.at(&["spec", "overhead"]), &class) {
                Some(why) => Err(request.forbidden(why)),
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
fn misfit(own: &Cursor<'_>, class: &Object) -> Option<&'static str> {
    if !class.at(&["overhead"]).is_present() {
        let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
        return own.is_present().then_some(why);
    }
    let fixed = class.at(&["overhead", "podFixed"]);
    let same = own.len() == fixed.len()
        && own.entries().all(|(name, value)| fixed.field(name).quantity() == value.quantity());
    (!same).then_some("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
}

fn schedule(change: MutationRequest<'_>, class: &Object) -> Result<()> {
    for (key, value) in class.at(&["scheduling", "nodeSelector"]).entries() {
        let own = change.new.at(&["spec", "nodeSelector"]).entry_str(key);
        if let Some(own) = own.filter(|own| *own != value.str()) {
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {own}",
                value.str()
            );
            return Err(change.forbidden(&why));
        }
        change.new.set(&["spec", "nodeSelector", key], value.str());
    }
    let path = ["spec", "tolerations"];
    for toleration in class.at(&["scheduling", "tolerations"]).items() {
        let there = change.new.at(&path).items().any(|own| own.same_as(&toleration));
        if let Some(node) = toleration.node().filter(|_| !there) {
            change.new.push_node(&path, node);
        }
    }
    Ok(())
}
