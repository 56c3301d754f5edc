//! Finds and deletes objects that were created from the folder and no longer have a manifest.
//!
//! Other objects are never deleted: a namespace or definition remains while it contains objects of other origin.

use std::collections::{BTreeSet, HashMap};

use portico_machinery::selector::LabelSelector;
use portico_machinery::{GroupResource, GroupVersion, Object, Reason, Status};
use portico_registry::{Call, ListOptions, Registry, StoredObject, Target};

use crate::apply::ObjectKey;
use crate::identity::{self, LABEL, LABEL_VALUE};
use crate::pass::definitions;
use crate::record::ResourceRecord;
use crate::requests::{Refusal, Requests, check_answer, target};

/// Number of objects listed to find out whether a namespace or definition is still in use.
const IN_USE_LIMIT: usize = 100;

/// An object without a manifest.
pub(crate) struct PruneCandidate {
    resource: GroupResource,
    stored: StoredObject,
}

impl PruneCandidate {
    /// Returns the name for messages.
    pub(crate) fn display_name(&self) -> String {
        display_name(&self.resource, self.stored.namespace(), self.stored.name())
    }
}

/// Formats the name of an object for messages.
pub(crate) fn display_name(resource: &GroupResource, namespace: &str, name: &str) -> String {
    match namespace {
        "" => format!("{resource}/{name}"),
        namespace => format!("{resource}/{namespace}/{name}"),
    }
}

/// Returns the objects that were created from the folder and have no manifest, in the order in which they may be deleted.
///
/// # Errors
/// Returns an error if objects cannot be listed.
pub(crate) async fn candidates(
    registry: &Registry,
    record: &mut ResourceRecord,
    applied: &HashMap<ObjectKey, String>,
) -> Result<Vec<PruneCandidate>, Box<Status>> {
    let (mut candidates, mut empty_resources) = (Vec::new(), BTreeSet::new());
    let applied_resources: BTreeSet<&GroupResource> = applied.keys().map(|key| &key.resource).collect();
    for resource in record.resources() {
        let created = created_objects(registry, resource).await?;
        if created.is_empty() && !applied_resources.contains(resource) {
            empty_resources.insert(resource.clone());
        }
        let without_manifest = created.into_iter().filter(|stored| {
            let (namespace, name) = (stored.namespace().to_owned(), stored.name().to_owned());
            !applied.contains_key(&ObjectKey { resource: resource.clone(), namespace, name })
        });
        candidates
            .extend(without_manifest.map(|stored| PruneCandidate { resource: resource.clone(), stored }));
    }
    record.remove(registry, empty_resources).await?;
    candidates.sort_by_key(|candidate| deletion_order(&candidate.resource));
    Ok(candidates)
}

/// Returns the order of deletion: definitions and namespaces, which contain other objects, are last.
fn deletion_order(resource: &GroupResource) -> u8 {
    match resource {
        resource if *resource == namespaces() => 2,
        resource if *resource == definitions() => 1,
        _ => 0,
    }
}

async fn created_objects(
    registry: &Registry,
    resource: &GroupResource,
) -> Result<Vec<StoredObject>, Box<Status>> {
    let labels = LabelSelector::parse(&format!("{LABEL}={LABEL_VALUE}")).unwrap_or_default();
    let options = ListOptions { labels, ..ListOptions::default() };
    match registry.list(resource, "", &options).await {
        Ok(listed) => {
            let is_from_folder = |stored: &StoredObject| {
                !stored.is_deleting() && identity::is_created_from_folder(stored.object())
            };
            Ok(listed.items.into_iter().filter(is_from_folder).collect())
        }
        // The definition is deleted, and its objects with it.
        Err(status) if status.reason() == Reason::NotFound => Ok(Vec::new()),
        Err(status) => Err(status),
    }
}

/// Deletes an object, or returns the reason why it remains.
pub(crate) async fn delete(
    registry: &Registry,
    requests: &dyn Requests,
    candidate: &PruneCandidate,
) -> Result<(), String> {
    if let Some(message) = in_use_message(registry, candidate).await.map_err(|status| status.message)? {
        return Err(message);
    }
    let PruneCandidate { resource, stored } = candidate;
    let served = registry.objects().reachable(resource).ok_or("no version of the resource is served")?;
    let target = target(&served, stored.namespace(), stored.name());
    delete_unchanged(requests, target, stored.object()).await.map_err(|refusal| refusal.message)
}

/// Deletes an object unless it has changed. Succeeds if the object is already gone.
pub(crate) async fn delete_unchanged(
    requests: &dyn Requests,
    target: Target,
    object: &Object,
) -> Result<(), Refusal> {
    let call = Call { body: delete_options(object).to_json().into(), ..identity::request("delete", target) };
    let answer = requests.serve(call).await;
    if answer.status.as_ref().is_some_and(|status| is_gone(status, object.name())) {
        Ok(())
    } else {
        check_answer(&answer)
    }
}

/// Returns true if the response means that this object does not exist, rather than its resource.
fn is_gone(status: &Status, name: &str) -> bool {
    let is_named = status.details.as_ref().is_some_and(|details| details.name == name);
    status.reason() == Reason::NotFound && is_named
}

/// Returns the delete options, with the state of the object as precondition.
fn delete_options(object: &Object) -> Object {
    let mut options = Object::new(&GroupVersion::new("", "v1").kind("DeleteOptions"));
    options.set(&["preconditions", "uid"], object.uid());
    options.set(&["preconditions", "resourceVersion"], object.resource_version());
    options.set(&["propagationPolicy"], "Background");
    options
}

/// Returns a message about a foreign object that would be deleted with the candidate; `None` if there is none.
async fn in_use_message(
    registry: &Registry,
    candidate: &PruneCandidate,
) -> Result<Option<String>, Box<Status>> {
    match deletion_order(&candidate.resource) {
        2 => remaining_in_namespace(registry, candidate.stored.name()).await,
        1 => {
            let definition = candidate.stored.object();
            let group = definition.at(&["spec", "group"]).str();
            let plural = definition.at(&["spec", "names", "plural"]).str();
            remaining_object(registry, &GroupResource::new(group, plural), "").await
        }
        _ => Ok(None),
    }
}

async fn remaining_in_namespace(registry: &Registry, namespace: &str) -> Result<Option<String>, Box<Status>> {
    let resources = registry.resources_in(namespace).await?;
    for resource in resources.into_iter().filter(|resource| !is_event(resource)) {
        if let Some(found) = remaining_object(registry, &resource, namespace).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns a message about an object that would not be deleted by itself; `None` if there is none.
async fn remaining_object(
    registry: &Registry,
    resource: &GroupResource,
    namespace: &str,
) -> Result<Option<String>, Box<Status>> {
    let options = ListOptions { limit: IN_USE_LIMIT, ..ListOptions::default() };
    let listed = match registry.list(resource, namespace, &options).await {
        Ok(listed) => listed,
        Err(status) if status.reason() == Reason::NotFound => return Ok(None),
        Err(status) => return Err(status),
    };
    let counts_as_use =
        |stored: &&StoredObject| !stored.is_deleting() && !is_created_per_namespace(resource, stored.name());
    if let Some(stored) = listed.items.iter().find(counts_as_use) {
        return Ok(Some(format!("{resource}/{} still exists", stored.name())));
    }
    let has_more = !listed.continue_token.is_empty();
    Ok(has_more.then(|| format!("{resource} still exist")))
}

/// Returns true for objects that controllers create in every namespace.
fn is_created_per_namespace(resource: &GroupResource, name: &str) -> bool {
    matches!(
        (&*resource.group, &*resource.resource, name),
        ("", "serviceaccounts", "default") | ("", "configmaps", "kube-root-ca.crt")
    )
}

/// Returns true for events, which only describe other objects and do not count as use.
fn is_event(resource: &GroupResource) -> bool {
    matches!((&*resource.group, &*resource.resource), ("" | "events.k8s.io", "events"))
}

fn namespaces() -> GroupResource {
    GroupResource::new("", "namespaces")
}
