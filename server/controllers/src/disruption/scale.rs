//! Scale that the pods' controllers request: of kinds that upstream reads directly, and of other kinds with a subresource
//! named `scale`.

use std::collections::{BTreeMap, BTreeSet};

use portico_machinery::object::OwnerReference;
use portico_machinery::{GroupVersion, GroupVersionKind, Object, Status};
use portico_registry::{Registry, ScaleError};

use crate::account::NamespacedName;

/// Error of determining the scale, reported in the status of the budget.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnknownScale {
    /// The `apiVersion` of an owner is invalid.
    #[error("{0}")]
    Owner(String),
    /// The kind has no scale or is not served.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// The controller does not exist or has another UID.
    #[error("found no controllers for pod \"{0}\"")]
    NoController(String),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] Box<Status>),
}

/// Returns the total scale of the controllers of all pods, each counted once (`getExpectedScale`). Pods without a controller
/// are ignored.
pub(super) async fn expected_scale(registry: &Registry, pods: &[&Object]) -> Result<i64, UnknownScale> {
    let mut scales: BTreeMap<String, i64> = BTreeMap::new();
    let mut counted_uids = BTreeSet::new();
    for pod in pods {
        let owners = pod.owner_references();
        let Some(owner) = owners.into_iter().find(|owner| owner.controller == Some(true)) else { continue };
        if counted_uids.contains(&owner.uid) {
            continue;
        }
        let (uid, scale) = owner_scale(registry, pod.namespace(), &owner)
            .await?
            .ok_or_else(|| UnknownScale::NoController(pod.name().to_owned()))?;
        scales.insert(uid, scale);
        counted_uids.insert(owner.uid);
    }
    Ok(scales.values().sum())
}

/// Returns the UID and scale of the controller that an owner reference names. For a ReplicaSet that belongs to a Deployment,
/// these are the Deployment's.
async fn owner_scale(
    registry: &Registry,
    namespace: &str,
    owner: &OwnerReference,
) -> Result<Option<(String, i64)>, UnknownScale> {
    let version = group_version(owner)?;
    let find = async |kind: &OwnerReference, group: &str, resource: &str| {
        let object_ref = NamespacedName::new(namespace, &kind.name).object_ref(group, resource);
        let found = registry.get_stored(&object_ref).await?;
        Ok::<_, UnknownScale>(found.filter(|found| found.uid() == kind.uid))
    };
    let uid_and_replicas =
        |object: &Object| (object.uid().to_owned(), object.at(&["spec", "replicas"]).i64().unwrap_or(0));
    let resource = match (version.group.as_str(), owner.kind.as_str()) {
        ("", "ReplicationController") => "replicationcontrollers",
        ("apps" | "extensions", "ReplicaSet") => "replicasets",
        ("apps", "StatefulSet") => "statefulsets",
        _ => return scale_subresource(registry, namespace, owner, version.kind(owner.kind.clone())).await,
    };
    let group = if version.group.is_empty() { "" } else { "apps" };
    let Some(found) = find(owner, group, resource).await? else { return Ok(None) };
    let object = found.object();
    let owners = object.owner_references();
    let deployment_owner =
        owners.into_iter().find(|owner| owner.controller == Some(true) && owner.kind == "Deployment");
    match deployment_owner.filter(|_| resource == "replicasets") {
        None => Ok(Some(uid_and_replicas(object))),
        Some(deployment) => {
            Ok(find(&deployment, "apps", "deployments").await?.map(|found| uid_and_replicas(found.object())))
        }
    }
}

/// Returns the UID and scale from the `scale` subresource (`getScaleController`).
async fn scale_subresource(
    registry: &Registry,
    namespace: &str,
    owner: &OwnerReference,
    kind: GroupVersionKind,
) -> Result<Option<(String, i64)>, UnknownScale> {
    let scale = registry.scale(&kind, namespace, &owner.name).await?;
    let scale = scale.filter(|scale| scale.object().uid() == owner.uid);
    let replicas = |scale: &Object| scale.at(&["spec", "replicas"]).i64().unwrap_or(0);
    Ok(scale.map(|scale| (owner.uid.clone(), replicas(scale.object()))))
}

fn group_version(owner: &OwnerReference) -> Result<GroupVersion, UnknownScale> {
    let unexpected = || UnknownScale::Owner(format!("unexpected GroupVersion string: {}", owner.api_version));
    owner.api_version.parse().map_err(|_| unexpected())
}
