//! OwnerReferencesPermissionEnforcement: setting owners of an object requires the permission to delete the object. Blocking the
//! deletion of an owner requires the permission to set finalizers of that owner.
//!
//! Upstream rules: plugin/pkg/admission/gc. The kind of an owner is looked up among the served resources.

use std::sync::Arc;

use portico_machinery::object::OwnerReference;
use portico_machinery::{
    Attributes as AccessAttributes, GroupResource, GroupVersion, Object, Status, UserInfo,
};
use portico_registry::{Attributes, Objects, Operation, ServedResource};

use crate::plugin::{ANY, Plugin, ResourcePattern, ValidationFuture, ValidationRequest};

const NO_DELETION: &str = "cannot set an ownerRef on a resource you can't delete";
const NO_FINALIZERS: &str =
    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on";

/// OwnerReferencesPermissionEnforcement plugin.
pub(crate) struct OwnerReferences;

impl Plugin for OwnerReferences {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[(ANY, ANY, ANY)]
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move { check(objects, &request).await.map(|()| Vec::new()) })
    }
}

async fn check(objects: &Objects, request: &ValidationRequest<'_>) -> Result<(), Box<Status>> {
    let attributes = &request.attributes;
    let resource = &attributes.served_resource.resource;
    // Old kubelets write invalid owner references with the status of pods; the status strategy of pods restores them.
    let is_pod_status = (resource.group.as_str(), resource.resource.as_str()) == ("", "pods")
        && attributes.subresource() == "status";
    let old = request.old.map(Object::owner_references).unwrap_or_default();
    let new = request.new.owner_references();
    if is_pod_status || new == old {
        return Ok(());
    }
    let user = Arc::new(attributes.context.user.clone());
    let ask = async |access: &AccessAttributes, message: &str| {
        let decision = objects.authorizer.decide(access).await;
        let refusal = || request.forbidden(&format!("{message}: {}, <nil>", decision.reason));
        if decision.is_allowed() { Ok(()) } else { Err(refusal()) }
    };
    if attributes.operation != Operation::Create {
        ask(&deletion_attributes(&user, attributes), NO_DELETION).await?;
    }
    let blocking = newly_blocking_references(&new, &old);
    if blocking.is_empty() || objects.authorizer.decide(&any_finalizers_attributes(&user)).await.is_allowed()
    {
        return Ok(());
    }
    for owner in blocking {
        let access = owner_finalizers_attributes(objects, attributes, &user, owner)
            .map_err(|error| request.forbidden(&error))?;
        ask(&access, NO_FINALIZERS).await?;
    }
    Ok(())
}

/// Returns the attributes for the permission to set the finalizers of an owner; an error if its kind is unknown.
fn owner_finalizers_attributes(
    objects: &Objects,
    attributes: &Attributes<'_>,
    user: &Arc<UserInfo>,
    owner: &OwnerReference,
) -> Result<AccessAttributes, String> {
    let Some(served) = kind_of(objects, owner) else {
        let (version, kind) = (&owner.api_version, &owner.kind);
        return Err(format!(
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {version} Kind {kind}: no matches for kind {kind:?} in version {version:?}"
        ));
    };
    let namespace = if served.info.namespaced { attributes.namespace } else { "" };
    let access =
        AccessAttributes::resource(Arc::clone(user), "update", &served.resource, namespace, &owner.name);
    Ok(access.with_subresource("finalizers").with_version(&served.info.gvk.version))
}

fn kind_of(objects: &Objects, owner: &OwnerReference) -> Option<Arc<ServedResource>> {
    let version: GroupVersion = owner.api_version.parse().ok()?;
    objects.by_kind(&version.kind(&owner.kind))
}

fn deletion_attributes(user: &Arc<UserInfo>, attributes: &Attributes<'_>) -> AccessAttributes {
    let (served, namespace) = (attributes.served_resource, attributes.namespace);
    AccessAttributes::resource(Arc::clone(user), "delete", &served.resource, namespace, attributes.name)
        .with_subresource(attributes.subresource())
        .with_version(&served.info.gvk.version)
}

/// Returns the attributes for the permission to set finalizers of all objects (upstream's `finalizeAnythingRecord`).
fn any_finalizers_attributes(user: &Arc<UserInfo>) -> AccessAttributes {
    AccessAttributes::resource(Arc::clone(user), "update", &GroupResource::new("*", "*"), "", "*")
        .with_subresource("finalizers")
        .with_version("*")
}

/// Returns the owners whose deletion is newly blocked (upstream's `newBlockingOwnerDeletionRefs`).
fn newly_blocking_references<'a>(
    new: &'a [OwnerReference],
    old: &[OwnerReference],
) -> Vec<&'a OwnerReference> {
    let blocks = |owner: &OwnerReference| owner.block_owner_deletion == Some(true);
    // Among several references to one owner the last one counts, as in upstream's index.
    let before = |uid: &str| old.iter().rev().find(|owner| owner.uid == uid);
    let is_new = |owner: &&OwnerReference| !before(&owner.uid).is_some_and(blocks);
    new.iter().filter(|owner| blocks(owner)).filter(is_new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(uid: &str, blocks: Option<bool>) -> OwnerReference {
        let mut object = Object::default();
        object.set(&["uid"], uid);
        if let Some(blocks) = blocks {
            object.set(&["blockOwnerDeletion"], blocks);
        }
        let mut holder = Object::default();
        holder.push_node(&["metadata", "ownerReferences"], object.into_node());
        holder.owner_references().remove(0)
    }

    #[test]
    fn newly_blocking_references_are_found() {
        let (blocks, does_not_block, unset) = (Some(true), Some(false), None);
        for (new, old, found) in [
            (vec![("a", blocks)], vec![], vec!["a"]),
            (vec![("a", does_not_block), ("b", unset)], vec![], vec![]),
            (vec![("a", blocks)], vec![("a", blocks)], vec![]),
            (vec![("a", blocks)], vec![("a", does_not_block)], vec!["a"]),
            (vec![("a", blocks)], vec![("a", unset)], vec!["a"]),
            (vec![("a", blocks), ("b", blocks)], vec![("a", blocks)], vec!["b"]),
        ] {
            let owners = |list: &[(&str, Option<bool>)]| {
                list.iter().map(|(uid, blocks)| owner(uid, *blocks)).collect::<Vec<_>>()
            };
            let (of_new, of_old) = (owners(&new), owners(&old));
            let uids: Vec<&str> = newly_blocking_references(&of_new, &of_old)
                .into_iter()
                .map(|owner| owner.uid.as_str())
                .collect();
            assert_eq!(uids, found, "{new:?} {old:?}");
        }
    }
}
