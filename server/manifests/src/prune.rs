//! Finds and deletes objects that were created from the folder and no longer have a manifest.
//!
//! Other objects are never deleted: a namespace or definition remains while it contains objects of other origin.

use std::collections::{BTreeSet, HashMap};

use portico_machinery::selector::LabelSelector;
use portico_machinery::{GroupResource, GroupVersion, Object, Reason, Status};
use portico_registry::{Call, ListOptions, Registry, Stored, Target};

use crate::apply::Key;
use crate::identity::{self, LABEL, MADE};
use crate::pass::definitions;
use crate::record::Record;
use crate::requests::{Refusal, Requests, refusal, target};

/// Number of objects listed to find out whether a namespace or definition is still in use.
const LOOKED_AT: usize = 100;

/// An object without a manifest.
pub(crate) struct Left {
    resource: GroupResource,
    stored: Stored,
}

impl Left {
    /// Returns the name for messages.
    pub(crate) fn named(&self) -> String {
        named(&self.resource, self.stored.namespace(), self.stored.name())
    }
}

/// Formats the name of an object for messages.
pub(crate) fn named(resource: &GroupResource, namespace: &str, name: &str) -> String {
    match namespace {
        "" => format!("{resource}/{name}"),
        namespace => format!("{resource}/{namespace}/{name}"),
    }
}

/// Returns the objects that were created from the folder and have no manifest, in the order in which they may be deleted.
///
/// # Errors
/// Returns an error if objects cannot be listed.
pub(crate) async fn left(
    registry: &Registry,
    record: &mut Record,
    wanted: &HashMap<Key, String>,
) -> Result<Vec<Left>, Box<Status>> {
    let (mut left, mut gone) = (Vec::new(), BTreeSet::new());
    let in_folder: BTreeSet<&GroupResource> = wanted.keys().map(|key| &key.resource).collect();
    for resource in record.resources() {
        let made = made(registry, resource).await?;
        if made.is_empty() && !in_folder.contains(resource) {
            gone.insert(resource.clone());
        }
        let strangers = made.into_iter().filter(|stored| {
            let (namespace, name) = (stored.namespace().to_owned(), stored.name().to_owned());
            !wanted.contains_key(&Key { resource: resource.clone(), namespace, name })
        });
        left.extend(strangers.map(|stored| Left { resource: resource.clone(), stored }));
    }
    record.forget(registry, gone).await?;
    left.sort_by_key(|left| rank(&left.resource));
    Ok(left)
}

/// Returns the order of deletion: definitions and namespaces, which contain other objects, are last.
fn rank(resource: &GroupResource) -> u8 {
    match resource {
        resource if *resource == namespaces() => 2,
        resource if *resource == definitions() => 1,
        _ => 0,
    }
}

async fn made(registry: &Registry, resource: &GroupResource) -> Result<Vec<Stored>, Box<Status>> {
    let labels = LabelSelector::parse(&format!("{LABEL}={MADE}")).unwrap_or_default();
    let options = ListOptions { labels, ..ListOptions::default() };
    match registry.list(resource, "", &options).await {
        Ok(listed) => {
            let is_ours = |stored: &Stored| !stored.is_deleting() && identity::is_made(stored.object());
            Ok(listed.items.into_iter().filter(is_ours).collect())
        }
        // The definition is deleted, and its objects with it.
        Err(status) if status.reason() == Reason::NotFound => Ok(Vec::new()),
        Err(status) => Err(status),
    }
}

/// Deletes an object, or returns the reason why it remains.
pub(crate) async fn delete(registry: &Registry, requests: &dyn Requests, left: &Left) -> Result<(), String> {
    if let Some(needed) = needed(registry, left).await.map_err(|status| status.message)? {
        return Err(needed);
    }
    let Left { resource, stored } = left;
    let served = registry.objects().reachable(resource).ok_or("no version of the resource is served")?;
    let target = target(&served, stored.namespace(), stored.name());
    delete_as_seen(requests, target, stored.object()).await.map_err(|refusal| refusal.message)
}

/// Deletes an object unless it has changed. Succeeds if the object is already gone.
pub(crate) async fn delete_as_seen(
    requests: &dyn Requests,
    target: Target,
    seen: &Object,
) -> Result<(), Refusal> {
    let call = Call { body: options(seen).to_json().into(), ..identity::call("delete", target) };
    let answer = requests.serve(call).await;
    if answer.status.as_ref().is_some_and(|status| is_gone(status, seen.name())) {
        Ok(())
    } else {
        refusal(&answer)
    }
}

/// Returns true if the response means that this object does not exist, rather than its resource.
fn is_gone(status: &Status, name: &str) -> bool {
    let is_named = status.details.as_ref().is_some_and(|details| details.name == name);
    status.reason() == Reason::NotFound && is_named
}

/// Returns the delete options, with the state of the object as precondition.
fn options(seen: &Object) -> Object {
    let mut options = Object::new(&GroupVersion::new("", "v1").kind("DeleteOptions"));
    options.set(&["preconditions", "uid"], seen.uid());
    options.set(&["preconditions", "resourceVersion"], seen.resource_version());
    options.set(&["propagationPolicy"], "Background");
    options
}

/// Returns a message about a foreign object that would be deleted with the candidate; `None` if there is none.
async fn needed(registry: &Registry, left: &Left) -> Result<Option<String>, Box<Status>> {
    match rank(&left.resource) {
        2 => in_namespace(registry, left.stored.name()).await,
        1 => {
            let definition = left.stored.object();
            let group = definition.at(&["spec", "group"]).str();
            let plural = definition.at(&["spec", "names", "plural"]).str();
            other(registry, &GroupResource::new(group, plural), "").await
        }
        _ => Ok(None),
    }
}

async fn in_namespace(registry: &Registry, namespace: &str) -> Result<Option<String>, Box<Status>> {
    let resources = registry.resources_in(namespace).await?;
    for resource in resources.into_iter().filter(|resource| !tells_of_others(resource)) {
        if let Some(found) = other(registry, &resource, namespace).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns a message about an object that would not be deleted by itself; `None` if there is none.
async fn other(
    registry: &Registry,
    resource: &GroupResource,
    namespace: &str,
) -> Result<Option<String>, Box<Status>> {
    let options = ListOptions { limit: LOOKED_AT, ..ListOptions::default() };
    let listed = match registry.list(resource, namespace, &options).await {
        Ok(listed) => listed,
        Err(status) if status.reason() == Reason::NotFound => return Ok(None),
        Err(status) => return Err(status),
    };
    let stays = |stored: &&Stored| !stored.is_deleting() && !comes_with_namespace(resource, stored.name());
    if let Some(stored) = listed.items.iter().find(stays) {
        return Ok(Some(format!("{resource}/{} still exists", stored.name())));
    }
    let more = !listed.continue_token.is_empty();
    Ok(more.then(|| format!("{resource} still exist")))
}

/// Returns true for objects that controllers create in every namespace.
fn comes_with_namespace(resource: &GroupResource, name: &str) -> bool {
    matches!(
        (&*resource.group, &*resource.resource, name),
        ("", "serviceaccounts", "default") | ("", "configmaps", "kube-root-ca.crt")
    )
}

/// Returns true for events, which only describe other objects and do not count as use.
fn tells_of_others(resource: &GroupResource) -> bool {
    matches!((&*resource.group, &*resource.resource), ("" | "events.k8s.io", "events"))
}

fn namespaces() -> GroupResource {
    GroupResource::new("", "namespaces")
}
