//! Pods: a kubelet may create mirror pods of its static pods, delete pods on its node, and write their status.

use portico_machinery::{GroupResource, Object, Status};
use portico_registry::{Operation, Result};
use portico_validation::pod_spec::{MIRROR, config_maps_of, secrets_of};

use super::node_request::NodeRequest;

/// Volume types that need no other object.
const PLAIN_VOLUMES: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

/// Volume types that need another object, with upstream's name for that object. Secrets and ConfigMaps are checked earlier.
const VOLUMES: [(&str, &str); 5] = [
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
];

/// Sources of projected volumes that need another object, with upstream's name for that object.
const PROJECTED_SOURCES: [(&str, &str); 3] = [
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

/// Checks a write of a pod (upstream's `admitPod`).
pub(super) async fn check(node_request: &NodeRequest<'_>, node: &str) -> Result<()> {
    match (node_request.attributes.operation, node_request.new, node_request.old) {
        (Operation::Create, Some(pod), _) => check_create(node_request, node, pod).await,
        // Upstream looks up a pod with an empty name, and the deletion of a collection ignores the resulting 404.
        (Operation::Delete, ..) if node_request.attributes.name.is_empty() => {
            Err(Box::new(Status::not_found(&GroupResource::new("", "pod"), "")))
        }
        (Operation::Delete, _, Some(pod)) if pod.str_at("spec.nodeName") == node => Ok(()),
        (Operation::Delete, ..) => Err(node_request
            .forbidden(&format!("node {node:?} can only delete pods with spec.nodeName set to itself"))),
        _ => {
            let operation = node_request.attributes.operation_name();
            Err(node_request.forbidden(&format!(
                "unexpected operation {operation:?}, node {node:?} can only create and delete mirror pods"
            )))
        }
    }
}

async fn check_create(node_request: &NodeRequest<'_>, node: &str, pod: &Object) -> Result<()> {
    let refused = |message: String| Err(node_request.forbidden(&message));
    if pod.annotation(MIRROR).is_none() {
        return refused(format!(
            "pod does not have {MIRROR:?} annotation, node {node:?} can only create mirror pods"
        ));
    }
    if pod.str_at("spec.nodeName") != node {
        return refused(format!("node {node:?} can only create pods with spec.nodeName set to itself"));
    }
    check_owner(node_request, node, pod).await?;
    match object_reference(pod) {
        Ok(None) => Ok(()),
        Ok(Some(kind)) => refused(format!("node {node:?} can not create pods that reference {kind}")),
        Err(error) => refused(format!("error checking mirror pod for API references: {error}")),
    }
}

/// Checks that the only owner of a mirror pod is its node.
async fn check_owner(node_request: &NodeRequest<'_>, node: &str, pod: &Object) -> Result<()> {
    let refused = |message: String| Err(node_request.forbidden(&message));
    let owners: Vec<_> = pod.at(&["metadata", "ownerReferences"]).items().collect();
    let owner = match owners.as_slice() {
        [owner] => owner,
        [] => {
            return refused(format!(
                "node {node:?} can only create pods with an owner reference set to itself"
            ));
        }
        _ => {
            return refused(format!(
                "node {node:?} can only create pods with a single owner reference set to itself"
            ));
        }
    };
    let expected = [("apiVersion", "v1"), ("kind", "Node"), ("name", node)];
    if expected.iter().any(|(field, text)| owner.field(field).str() != *text) {
        return refused(format!("node {node:?} can only create pods with an owner reference set to itself"));
    }
    if !owner.field("controller").bool() {
        return refused(format!(
            "node {node:?} can only create pods with a controller owner reference set to itself"
        ));
    }
    if owner.field("blockOwnerDeletion").bool() {
        return refused(format!("node {node:?} must not set blockOwnerDeletion on an owner reference"));
    }
    let (expected_uid, node_object) =
        (owner.field("uid").str(), node_request.core_object("node", "", node).await?);
    if expected_uid != node_object.uid() {
        return refused(format!(
            "node {node} UID mismatch: expected {expected_uid} got {}",
            node_object.uid()
        ));
    }
    Ok(())
}

/// Returns upstream's name for the first object that a pod refers to (upstream's `HasAPIObjectReference`), or an error for an
/// unknown volume type.
fn object_reference(pod: &Object) -> std::result::Result<Option<&'static str>, String> {
    let spec = pod.at(&["spec"]);
    if !spec.field("serviceAccountName").str().is_empty() {
        return Ok(Some("serviceaccounts"));
    }
    if !secrets_of(pod).is_empty() {
        return Ok(Some("secrets"));
    }
    if !config_maps_of(pod).is_empty() {
        return Ok(Some("configmaps"));
    }
    if !spec.field("resourceClaims").is_empty() {
        return Ok(Some("resourceclaims"));
    }
    for volume in spec.field("volumes").items() {
        if let Some((_, kind)) = VOLUMES.iter().find(|(kind, _)| volume.field(kind).is_present()) {
            return Ok(Some(kind));
        }
        let projected = volume.field("projected");
        for source in projected.field("sources").items() {
            if let Some((_, kind)) =
                PROJECTED_SOURCES.iter().find(|(kind, _)| source.field(kind).is_present())
            {
                return Ok(Some(kind));
            }
            if !source.field("downwardAPI").is_present() {
                return Err(format!("unknown source for projected volume {:?}", volume.field("name").str()));
            }
        }
        let plain = PLAIN_VOLUMES.iter().any(|kind| volume.field(kind).is_present());
        if !plain && !projected.is_present() {
            return Err(format!("unknown volume type for volume  {:?}", volume.field("name").str()));
        }
    }
    Ok(None)
}

/// Checks a write of a pod's status (upstream's `admitPodStatus`).
pub(super) fn check_status(node_request: &NodeRequest<'_>, node: &str) -> Result<()> {
    let (Operation::Update, Some(new), Some(old)) =
        (node_request.attributes.operation, node_request.new, node_request.old)
    else {
        return Err(node_request.unexpected());
    };
    let message = if old.str_at("spec.nodeName") != node {
        "can only update pod status for pods with spec.nodeName set to itself"
    } else if old.labels() != new.labels() {
        "cannot update labels through pod status"
    } else if claim_statuses(old) != claim_statuses(new) {
        "cannot update resource claim statues"
    } else if !extended_claim_status(old).same_as(&extended_claim_status(new)) {
        "cannot update extended resource claim status"
    } else {
        return Ok(());
    };
    Err(node_request.forbidden(&format!("node {node:?} {message}")))
}

fn claim_statuses(pod: &Object) -> Vec<(&str, Option<&str>)> {
    let statuses = pod.at(&["status", "resourceClaimStatuses"]).items();
    statuses.map(|status| (status.field("name").str(), status.field("resourceClaimName").opt_str())).collect()
}

fn extended_claim_status(pod: &Object) -> portico_machinery::Cursor<'_> {
    pod.at(&["status", "extendedResourceClaimStatus"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_references_of_a_pod_are_found() {
        let volume = |json: &str| format!(r#"{{"volumes":[{{"name":"v",{json}}}]}}"#);
        for (spec, expected) in [
            ("{}".to_owned(), Ok(None)),
            (r#"{"serviceAccountName":"a"}"#.to_owned(), Ok(Some("serviceaccounts"))),
            (r#"{"imagePullSecrets":[{"name":"a"}]}"#.to_owned(), Ok(Some("secrets"))),
            (volume(r#""configMap":{"name":"a"}"#), Ok(Some("configmaps"))),
            (r#"{"resourceClaims":[{"name":"a"}]}"#.to_owned(), Ok(Some("resourceclaims"))),
            (volume(r#""emptyDir":{}"#), Ok(None)),
            (volume(r#""hostPath":{"path":"/"}"#), Ok(None)),
            (volume(r#""csi":{"driver":"d"}"#), Ok(Some("csidrivers (via CSI volumes)"))),
            (volume(r#""persistentVolumeClaim":{"claimName":"c"}"#), Ok(Some("persistentvolumeclaims"))),
            (volume(r#""projected":{"sources":[{"downwardAPI":{}}]}"#), Ok(None)),
            (
                volume(r#""projected":{"sources":[{"serviceAccountToken":{"path":"p"}}]}"#),
                Ok(Some("serviceaccounts (via projected volumes)")),
            ),
            (
                volume(r#""projected":{"sources":[{"new":{}}]}"#),
                Err("unknown source for projected volume \"v\"".to_owned()),
            ),
            (volume(r#""new":{}"#), Err("unknown volume type for volume  \"v\"".to_owned())),
        ] {
            let pod = Object::from_json(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap();
            assert_eq!(object_reference(&pod), expected, "{spec}");
        }
    }
}
