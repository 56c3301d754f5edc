//! RuntimeClass: a pod gets its class's overhead and scheduling.

use portico_machinery::Object;

use crate::plugin::{Mutating, MutationRequest, PODS, Plugin, Target};
use portico_registry::Objects;
use portico_registry::Result;

pub(super) struct RuntimeClass;

impl Plugin for RuntimeClass {
    fn targets(&self) -> &'static [Target] {
        PODS
    }

    fn mutate<'a>(&'a self, objects: &'a Objects, change: MutationRequest<'a>) -> Mutating<'a> {
        Box::pin(async move {
            if change.old.is_some() {
                return Ok(());
            }
            let name = change.new.str_at("spec.runtimeClassName").to_owned();
            let class = match name.as_str() {
                "" => Some(Object::default()),
                name => objects.object_of("node.k8s.io", "runtimeclasses", "", name).await?,
            };
            let Some(class) = class else {
                return Err(change.forbidden(&format!("pod rejected: RuntimeClass {name:?} not found")));
            };
            check_overhead(&change, &class)?;
            if let Some(node) = class.get(&["overhead", "podFixed"]) {
                change.new.put(&["spec", "overhead"], node);
            }
            schedule(change, &class)
        })
    }
}

/// The pod's overhead is its class's, or unsaid.
fn check_overhead(change: &MutationRequest<'_>, class: &Object) -> Result<()> {
    let (own, fixed) = (change.new.at(&["spec", "overhead"]), class.at(&["overhead", "podFixed"]));
    if own.is_empty() {
        return Ok(());
    }
    if !class.at(&["overhead"]).is_present() {
        let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
        return Err(change.forbidden(why));
    }
    let same = own.len() == fixed.len()
        && own.entries().all(|(name, value)| fixed.field(name).quantity() == value.quantity());
    if same {
        return Ok(());
    }
    Err(change.forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"))
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
