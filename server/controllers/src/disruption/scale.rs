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
pub(super) async fn wanted(registry: &Registry, pods: &[&Object]) -> Result<i64, UnknownScale> {
    let mut scales: BTreeMap<String, i64> = BTreeMap::new();
    let mut known = BTreeSet::new();
    for pod in pods {
        let owners = pod.owner_references();
        let Some(owner) = owners.into_iter().find(|owner| owner.controller == Some(true)) else { continue };
        if known.contains(&owner.uid) {
            continue;
        }
        let (uid, scale) = of_owner(registry, pod.namespace(), &owner)
            .await?
            .ok_or_else(|| UnknownScale::NoController(pod.name().to_owned()))?;
        scales.insert(uid, scale);
        known.insert(owner.uid);
    }
    Ok(scales.values().sum())
}

/// Returns the UID and scale of the controller that an owner reference names. For a ReplicaSet that belongs to a Deployment,
/// these are the Deployment's.
async fn of_owner(
    registry: &Registry,
    namespace: &str,
    owner: &OwnerReference,
) -> Result<Option<(String, i64)>, UnknownScale> {
    let version = group_version(owner)?;
    let find = async |kind: &OwnerReference, group: &str, resource: &str| {
        let at = NamespacedName::new(namespace, &kind.name).of(group, resource);
        let found = registry.get_stored(&at).await?;
        Ok::<_, UnknownScale>(found.filter(|found| found.uid() == kind.uid))
    };
    let wish =
        |object: &Object| (object.uid().to_owned(), object.at(&["spec", "replicas"]).i64().unwrap_or(0));
    let resource = match (version.group.as_str(), owner.kind.as_str()) {
        ("", "ReplicationController") => "replicationcontrollers",
        ("apps" | "extensions", "ReplicaSet") => "replicasets",
        ("apps", "StatefulSet") => "statefulsets",
        _ => return of_scale(registry, namespace, owner, version.kind(owner.kind.clone())).await,
    };
    let group = if version.group.is_empty() { "" } else { "apps" };
    let Some(found) = find(owner, group, resource).await? else { return Ok(None) };
    let object = found.object();
    let owners = object.owner_references();
    let above = owners.into_iter().find(|above| above.controller == Some(true) && above.kind == "Deployment");
    match above.filter(|_| resource == "replicasets") {
        None => Ok(Some(wish(object))),
        Some(deployment) => {
            Ok(find(&deployment, "apps", "deployments").await?.map(|found| wish(found.object())))
        }
    }
}

/// Returns the UID and scale from the `scale` subresource (`getScaleController`).
async fn of_scale(
    registry: &Registry,
    namespace: &str,
    owner: &OwnerReference,
    kind: GroupVersionKind,
) -> Result<Option<(String, i64)>, UnknownScale> {
    let scale = registry.scale(&kind, namespace, &owner.name).await?;
    let scale = scale.filter(|scale| scale.object().uid() == owner.uid);
    let wish = |scale: &Object| scale.at(&["spec", "replicas"]).i64().unwrap_or(0);
    Ok(scale.map(|scale| (owner.uid.clone(), wish(scale.object()))))
}

fn group_version(owner: &OwnerReference) -> Result<GroupVersion, UnknownScale> {
    let unexpected = || UnknownScale::Owner(format!("unexpected GroupVersion string: {}", owner.api_version));
    owner.api_version.parse().map_err(|_| unexpected())
}
