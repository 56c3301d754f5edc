//! Priority: the priority of a pod is the value of its class, and at most one class is the default.

use portico_machinery::{GroupResource, Object};

use crate::listing::list_all;
use crate::plugin::{
    MutationFuture, MutationRequest, Plugin, ResourcePattern, ValidationFuture, ValidationRequest,
};
use portico_registry::{Attributes, Objects, Result};

const GROUP: &str = "scheduling.k8s.io";
const CLASSES: &str = "priorityclasses";
const PREEMPT: &str = "PreemptLowerPriority";

pub(super) struct Priority;

impl Plugin for Priority {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[("", "pods", ""), (GROUP, CLASSES, "")]
    }

    fn mutate<'a>(&'a self, objects: &'a Objects, change: MutationRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async move {
            match (change.attributes.served_resource.resource.resource.as_str(), change.old) {
                (CLASSES, _) => Ok(()),
                (_, None) => create(objects, change).await,
                (_, Some(old)) => {
                    for field in ["priority", "preemptionPolicy"] {
                        if !change.new.at(&["spec", field]).is_present() {
                            change.new.copy_from(old, &["spec", field]);
                        }
                    }
                    Ok(())
                }
            }
        })
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            if request.attributes.served_resource.resource.resource == CLASSES {
                check_single_default(objects, &request).await?;
            }
            Ok(Vec::new())
        })
    }
}

async fn create(objects: &Objects, change: MutationRequest<'_>) -> Result<()> {
    let name = change.new.str_at("spec.priorityClassName").to_owned();
    let class = if name.is_empty() {
        let defaults = classes(objects, &change.attributes)
            .await?
            .into_iter()
            .filter(|class| class.at(&["globalDefault"]).bool());
        defaults.min_by_key(|class| class.at(&["value"]).i64().unwrap_or(0))
    } else {
        let found = objects.object_of(GROUP, CLASSES, "", &name).await?;
        if found.is_none() {
            return Err(change.forbidden(&format!("no PriorityClass with name {name} was found")));
        }
        found
    };
    let (mut priority, mut policy) = (0, PREEMPT.to_owned());
    if let Some(class) = &class {
        change.new.set(&["spec", "priorityClassName"], class.name());
        priority = class.at(&["value"]).i64().unwrap_or(0);
        if let Some(class_policy) = class.at(&["preemptionPolicy"]).opt_str().filter(|own| !own.is_empty()) {
            class_policy.clone_into(&mut policy);
        }
    }
    check_sent_values(&change, priority, &policy)?;
    change.new.set(&["spec", "priority"], priority);
    change.new.set(&["spec", "preemptionPolicy"], policy);
    Ok(())
}

/// Checks that the values sent by the client equal the computed ones.
fn check_sent_values(change: &MutationRequest<'_>, priority: i64, policy: &str) -> Result<()> {
    if let Some(sent) = change.new.at(&["spec", "priority"]).i64().filter(|sent| *sent != priority) {
        return Err(change.forbidden(&format!(
            "the integer value of priority ({sent}) must not be provided in pod spec; priority admission controller computed {priority} from the given PriorityClass name"
        )));
    }
    let sent = change.new.at(&["spec", "preemptionPolicy"]).opt_str();
    if let Some(sent) = sent.filter(|sent| *sent != policy) {
        return Err(change.forbidden(&format!(
            "the string value of PreemptionPolicy ({sent}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        )));
    }
    Ok(())
}

async fn classes(objects: &Objects, attributes: &Attributes<'_>) -> Result<Vec<Object>> {
    list_all(objects, None, &GroupResource::new(GROUP, CLASSES)).await?.complete(attributes)
}

async fn check_single_default(objects: &Objects, change: &ValidationRequest<'_>) -> Result<()> {
    if !change.new.at(&["globalDefault"]).bool() {
        return Ok(());
    }
    let classes = classes(objects, &change.attributes).await?;
    let other = |class: &&Object| class.at(&["globalDefault"]).bool() && class.name() != change.new.name();
    match classes.iter().find(other) {
        Some(other) => Err(change.forbidden(&format!(
            "PriorityClass {} is already marked as default. Only one default can exist",
            other.name()
        ))),
        None => Ok(()),
    }
}
