//! Objects on other servers that were created from the folder and no longer have a manifest.
//!
//! Resources that cannot be listed, and objects that cannot be deleted, stay in the record: an entry is removed only after its
//! server has reported that no object of the folder remains.

use std::collections::BTreeSet;

use portico_machinery::{GroupResource, GroupVersion, Object};
use portico_registry::{Body, Target};

use super::job::{GroupPass, PrunePolicy};
use crate::apply::{self, ObjectKey};
use crate::identity::{self, LABEL, LABEL_VALUE};
use crate::prune;
use crate::requests::{Refusal, check_answer};

/// Objects in a page of a resource on another API server that is searched for objects to delete.
///
/// Limit (Manifests): the next page is read.
const PAGE_SIZE: usize = 500;
/// Pages of one resource on another API server that are searched for objects to delete.
///
/// Limit (Manifests): the rest waits for the next run.
const MAX_PAGES: usize = 20;

/// Deletes objects without a manifest if the policy is `Delete`; otherwise lists them in the result.
pub(super) async fn clean_up(pass: &mut GroupPass<'_>) {
    if pass.job.prune_policy == PrunePolicy::Defer {
        return;
    }
    pass.result.has_searched_remaining = true;
    let mut empty_resources = BTreeSet::new();
    for (resource, version) in pass.record.resources_of_group(&pass.job.group) {
        let group_version = GroupVersion::new(&resource.group, &version);
        match prune_resource(pass, &resource, &group_version).await {
            Ok(0) if !pass.has_documents_of(&resource) => {
                empty_resources.insert(resource);
            }
            Ok(_) => {}
            Err(reason) => {
                pass.result.needs_retry = true;
                if !pass.has_documents_of(&resource) {
                    pass.result
                        .remaining
                        .push(format!("{resource} (cannot list the remaining objects: {reason})"));
                }
            }
        }
    }
    if let Err(status) = pass.record.remove(&pass.job.registry, empty_resources).await {
        tracing::warn!(error = %status, "cannot update the record of applied manifests, retrying");
        pass.result.needs_retry = true;
    }
}

/// Prunes one resource. Returns the number of remaining objects created from the folder, including those with a manifest.
async fn prune_resource(
    pass: &mut GroupPass<'_>,
    resource: &GroupResource,
    group_version: &GroupVersion,
) -> Result<usize, String> {
    let served = pass.resources(group_version).await?;
    if !served.iter().any(|served| served.name == resource.resource) {
        return Err(format!("the API server does not serve {resource} in {group_version}"));
    }
    let (created, is_complete) =
        created_objects(pass, resource, group_version).await.map_err(|refusal| refusal.message)?;
    pass.result.needs_retry |= !is_complete;
    let mut remaining = created.len() + usize::from(!is_complete);
    for object in &created {
        let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
        let key = ObjectKey { resource: resource.clone(), namespace, name };
        if pass.result.applied.contains_key(&key) {
            continue;
        }
        let display_name = prune::display_name(resource, &key.namespace, &key.name);
        match delete(pass, group_version, &key, object).await {
            Ok(()) => {
                remaining -= 1;
                pass.result.deleted += 1;
                tracing::info!(object = display_name, "object deleted, manifest removed");
            }
            Err(reason) => pass.result.remaining.push(format!("{display_name} ({reason})")),
        }
    }
    Ok(remaining)
}

/// Deletes an object, or returns the reason why it remains.
async fn delete(
    pass: &mut GroupPass<'_>,
    group_version: &GroupVersion,
    key: &ObjectKey,
    object: &Object,
) -> Result<(), String> {
    if let PrunePolicy::Keep(reason) = pass.job.prune_policy {
        return Err(reason.to_owned());
    }
    // Checks that the server still responds and that the pass has time left.
    let availability = pass.resources(group_version).await.map(drop);
    let deleted = match availability {
        Ok(()) => {
            let target = apply::target_of(group_version, key);
            prune::delete_unchanged(pass.job.client.as_ref(), target, object).await
        }
        Err(reason) => Err(Refusal::temporary(reason)),
    };
    deleted.map_err(|refusal| {
        pass.result.needs_retry = true;
        pass.record_outage(group_version, &refusal);
        refusal.message
    })
}

/// Returns the objects created from the folder that are not being deleted, and whether these are all.
async fn created_objects(
    pass: &mut GroupPass<'_>,
    resource: &GroupResource,
    group_version: &GroupVersion,
) -> Result<(Vec<Object>, bool), Refusal> {
    let target = Target {
        group: group_version.group.clone(),
        version: group_version.version.clone(),
        resource: resource.resource.clone(),
        ..Target::default()
    };
    let (mut created, mut continue_token) = (Vec::new(), String::new());
    for _ in 0..MAX_PAGES {
        let mut call = identity::request("list", target.clone());
        call.query = page_query(&continue_token);
        let answer = pass.job.client.serve(call).await;
        if let Err(refusal) = check_answer(&answer) {
            pass.record_outage(group_version, &refusal);
            return Err(refusal);
        }
        let list = parse_list(&answer.body)?;
        for item in list.at(&["items"]).items() {
            let object = Object::from_node(item.node().unwrap_or_default());
            let object = object.map_err(|error| Refusal::permanent(error.to_string()))?;
            if object.deletion_timestamp().is_none() && identity::is_created_from_folder(&object) {
                created.push(object);
            }
        }
        list.at(&["metadata", "continue"]).str().clone_into(&mut continue_token);
        if continue_token.is_empty() {
            return Ok((created, true));
        }
    }
    Ok((created, false))
}

/// Returns the query for a page of these objects.
fn page_query(continue_token: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query
        .append_pair("labelSelector", &format!("{LABEL}={LABEL_VALUE}"))
        .append_pair("limit", &PAGE_SIZE.to_string());
    if !continue_token.is_empty() {
        query.append_pair("continue", continue_token);
    }
    query.finish()
}

fn parse_list(body: &Body) -> Result<Object, Refusal> {
    let Body::Bytes(json) = body else { return Err(Refusal::permanent("the response is not a list")) };
    let list = Object::from_json(json).map_err(|error| Refusal::permanent(error.to_string()))?;
    if list.kind().ends_with("List") {
        Ok(list)
    } else {
        Err(Refusal::permanent("the response is not a list"))
    }
}
