//! Objects on other servers that were created from the folder and no longer have a manifest.
//!
//! Resources that cannot be listed, and objects that cannot be deleted, stay in the record: an entry is removed only after its
//! server has reported that no object of the folder remains.

use std::collections::BTreeSet;

use portico_machinery::{GroupResource, GroupVersion, Object};
use portico_registry::{Body, Target};

use super::job::{Pruning, Visiting};
use crate::apply::{self, Key};
use crate::identity::{self, LABEL, MADE};
use crate::prune;
use crate::requests::{Refusal, refusal};

/// Objects in a page of a resource on another API server that is searched for objects to delete.
///
/// Limit (Manifests): the next page is read.
const PAGE: usize = 500;
/// Pages of one resource on another API server that are searched for objects to delete.
///
/// Limit (Manifests): the rest waits for the next run.
const MAX_PAGES: usize = 20;

/// Deletes objects without a manifest if the policy says so; otherwise lists them in the result.
pub(super) async fn clean_up(visiting: &mut Visiting<'_>) {
    if visiting.job.pruning == Pruning::Later {
        return;
    }
    visiting.visit.has_looked = true;
    let mut gone = BTreeSet::new();
    for (resource, version) in visiting.record.of_group(&visiting.job.group) {
        let group_version = GroupVersion::new(&resource.group, &version);
        match of_resource(visiting, &resource, &group_version).await {
            Ok(0) if !visiting.has_documents_of(&resource) => {
                gone.insert(resource);
            }
            Ok(_) => {}
            Err(why) => {
                visiting.visit.has_undone = true;
                if !visiting.has_documents_of(&resource) {
                    visiting
                        .visit
                        .left
                        .push(format!("{resource} (cannot list the remaining objects: {why})"));
                }
            }
        }
    }
    if let Err(status) = visiting.record.forget(&visiting.job.registry, gone).await {
        tracing::warn!(error = %status, "cannot update the record of applied manifests, retrying");
        visiting.visit.has_undone = true;
    }
}

/// Prunes one resource. Returns the number of remaining objects created from the folder, including those with a manifest.
async fn of_resource(
    visiting: &mut Visiting<'_>,
    resource: &GroupResource,
    group_version: &GroupVersion,
) -> Result<usize, String> {
    let served = visiting.resources(group_version).await?;
    if !served.iter().any(|served| served.name == resource.resource) {
        return Err(format!("the API server does not serve {resource} in {group_version}"));
    }
    let (made, is_all) = made(visiting, resource, group_version).await.map_err(|refusal| refusal.message)?;
    visiting.visit.has_undone |= !is_all;
    let mut left = made.len() + usize::from(!is_all);
    for object in &made {
        let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
        let key = Key { resource: resource.clone(), namespace, name };
        if visiting.visit.applied.contains_key(&key) {
            continue;
        }
        let named = prune::named(resource, &key.namespace, &key.name);
        match delete(visiting, group_version, &key, object).await {
            Ok(()) => {
                left -= 1;
                visiting.visit.deleted += 1;
                tracing::info!(object = named, "object deleted, manifest removed");
            }
            Err(why) => visiting.visit.left.push(format!("{named} ({why})")),
        }
    }
    Ok(left)
}

/// Deletes an object, or returns the reason why it remains.
async fn delete(
    visiting: &mut Visiting<'_>,
    group_version: &GroupVersion,
    key: &Key,
    object: &Object,
) -> Result<(), String> {
    if let Pruning::Kept(why) = visiting.job.pruning {
        return Err(why.to_owned());
    }
    // Checks that the server still responds and that the pass has time left.
    let asked = visiting.resources(group_version).await.map(drop);
    let deleted = match asked {
        Ok(()) => {
            let target = apply::target_of(group_version, key);
            prune::delete_as_seen(visiting.job.others.as_ref(), target, object).await
        }
        Err(why) => Err(Refusal::passing(why)),
    };
    deleted.map_err(|refusal| {
        visiting.visit.has_undone = true;
        visiting.note(group_version, &refusal);
        refusal.message
    })
}

/// Returns the objects created from the folder that are not being deleted, and whether these are all.
async fn made(
    visiting: &mut Visiting<'_>,
    resource: &GroupResource,
    group_version: &GroupVersion,
) -> Result<(Vec<Object>, bool), Refusal> {
    let target = Target {
        group: group_version.group.clone(),
        version: group_version.version.clone(),
        resource: resource.resource.clone(),
        ..Target::default()
    };
    let (mut made, mut go_on) = (Vec::new(), String::new());
    for _ in 0..MAX_PAGES {
        let mut call = identity::call("list", target.clone());
        call.query = page(&go_on);
        let answer = visiting.job.others.serve(call).await;
        if let Err(refusal) = refusal(&answer) {
            visiting.note(group_version, &refusal);
            return Err(refusal);
        }
        let list = list(&answer.body)?;
        for item in list.at(&["items"]).items() {
            let object = Object::from_node(item.node().unwrap_or_default());
            let object = object.map_err(|error| Refusal::lasting(error.to_string()))?;
            if object.deletion_timestamp().is_none() && identity::is_made(&object) {
                made.push(object);
            }
        }
        list.at(&["metadata", "continue"]).str().clone_into(&mut go_on);
        if go_on.is_empty() {
            return Ok((made, true));
        }
    }
    Ok((made, false))
}

/// Returns the query for a page of these objects.
fn page(go_on: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("labelSelector", &format!("{LABEL}={MADE}")).append_pair("limit", &PAGE.to_string());
    if !go_on.is_empty() {
        query.append_pair("continue", go_on);
    }
    query.finish()
}

fn list(body: &Body) -> Result<Object, Refusal> {
    let Body::Bytes(json) = body else { return Err(Refusal::lasting("the response is not a list")) };
    let list = Object::from_json(json).map_err(|error| Refusal::lasting(error.to_string()))?;
    if list.kind().ends_with("List") { Ok(list) } else { Err(Refusal::lasting("the response is not a list")) }
}
