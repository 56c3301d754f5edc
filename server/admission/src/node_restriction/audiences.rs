//! Token audiences: those that the volumes of the pod need, or that the user of the kubelet is permitted to request.

use portico_machinery::{Attributes, Cursor, GroupResource, Object};
use portico_registry::Objects;

use super::node_request::NodeRequest;

/// Volume types in Kubernetes itself that CSI drivers serve today (upstream's `csi-translation-lib`).
const IN_TREE_DRIVERS: [(&str, &str); 7] = [
    ("awsElasticBlockStore", "ebs.csi.aws.com"),
    ("azureDisk", "disk.csi.azure.com"),
    ("azureFile", "file.csi.azure.com"),
    ("cinder", "cinder.csi.openstack.org"),
    ("gcePersistentDisk", "pd.csi.storage.gke.io"),
    ("portworxVolume", "pxd.portworx.com"),
    ("vsphereVolume", "csi.vsphere.vmware.com"),
];

/// Checks the audience of a token request (upstream's `validateNodeServiceAccountAudience`).
///
/// # Errors
/// The reason for the refusal.
pub(super) async fn check(
    node_request: &NodeRequest<'_>,
    pod: &Object,
    request: &Object,
) -> Result<(), String> {
    let audiences: Vec<&str> = request.at(&["spec", "audiences"]).items().map(|item| item.str()).collect();
    let audience = match audiences.as_slice() {
        [] => "",
        [audience] => audience,
        _ => return Err("node may only request 0 or 1 audiences".to_owned()),
    };
    let needed = needs_audience(node_request.objects, pod, audience).await;
    if needed.map_err(|error| format!("error validating audience {audience:?}: {error}"))? {
        return Ok(());
    }
    let user = &node_request.attributes.context.user;
    let (namespace, account) = (node_request.attributes.namespace, node_request.name());
    let resource = GroupResource::new("", audience);
    let verb = "request-serviceaccounts-token-audience";
    let attributes =
        Attributes::resource(user.clone(), verb, &resource, namespace, account).with_version("v1");
    if node_request.objects.authorizer.decide(&attributes).await.is_allowed() {
        return Ok(());
    }
    Err(format!(
        "audience {audience:?} not found in pod spec volume, {} is not authorized to request tokens for this audience",
        user.name
    ))
}

/// True if a volume of the pod needs a token for this audience. Errors of volumes are returned only if no volume needs one.
async fn needs_audience(objects: &Objects, pod: &Object, audience: &str) -> Result<bool, String> {
    let mut errors: Vec<String> = Vec::new();
    for volume in pod.at(&["spec", "volumes"]).items() {
        if volume.field("projected").field("sources").items().any(|source| {
            let token = source.field("serviceAccountToken");
            token.is_present() && token.field("audience").str() == audience
        }) {
            return Ok(true);
        }
        let found = match driver(objects, pod, &volume).await {
            Ok(Some(driver)) => driver_needs_audience(objects, &driver, audience).await,
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        };
        match found {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) if errors.contains(&error) => {}
            Err(error) => errors.push(error),
        }
    }
    match errors.as_slice() {
        [] => Ok(false),
        [error] => Err(error.clone()),
        all => Err(format!("[{}]", all.join(", "))),
    }
}

/// Returns the CSI driver that serves a volume.
async fn driver(objects: &Objects, pod: &Object, volume: &Cursor<'_>) -> Result<Option<String>, String> {
    let claim = volume.field("persistentVolumeClaim");
    if volume.field("ephemeral").field("volumeClaimTemplate").is_present() {
        let name = format!("{}-{}", pod.name(), volume.field("name").str());
        return driver_of_claim(objects, pod.namespace(), &name).await;
    }
    if claim.is_present() {
        return driver_of_claim(objects, pod.namespace(), claim.field("claimName").str()).await;
    }
    Ok(source_driver(volume))
}

/// Returns the driver of a volume source that is not a claim.
fn source_driver(source: &Cursor<'_>) -> Option<String> {
    let migrated = || IN_TREE_DRIVERS.iter().find(|(kind, _)| source.field(kind).is_present());
    match source.field("csi").field("driver").str() {
        "" => migrated().map(|(_, driver)| (*driver).to_owned()),
        driver => Some(driver.to_owned()),
    }
}

/// Returns the driver of the volume to which a claim is bound.
async fn driver_of_claim(objects: &Objects, namespace: &str, name: &str) -> Result<Option<String>, String> {
    let claim = find(objects, "", "persistentvolumeclaim", namespace, name).await?;
    let volume = find(objects, "", "persistentvolume", "", claim.str_at("spec.volumeName")).await?;
    Ok(source_driver(&volume.at(&["spec"])))
}

async fn driver_needs_audience(objects: &Objects, driver: &str, audience: &str) -> Result<bool, String> {
    let driver = find(objects, "storage.k8s.io", "csidriver", "", driver).await?;
    let mut requests = driver.at(&["spec", "tokenRequests"]).items();
    Ok(requests.any(|request| request.field("audience").str() == audience))
}

async fn find(
    objects: &Objects,
    group: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Object, String> {
    let found = objects.object_of(group, &format!("{kind}s"), namespace, name).await;
    let suffix = if group.is_empty() { String::new() } else { format!(".{group}") };
    found.map_err(|status| status.to_string())?.ok_or_else(|| format!("{kind}{suffix} {name:?} not found"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_of_an_in_tree_volume_is_the_driver_that_replaced_it() {
        for (json, expected) in [
            (r#"{"csi":{"driver":"d"}}"#, Some("d")),
            (r#"{"gcePersistentDisk":{"pdName":"x"}}"#, Some("pd.csi.storage.gke.io")),
            (r#"{"emptyDir":{}}"#, None),
        ] {
            let volume = Object::from_json(json.as_bytes()).unwrap();
            assert_eq!(source_driver(&volume.cursor()).as_deref(), expected);
        }
    }
}
