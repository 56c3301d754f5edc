//! Volume with the token of a service account, and its mounts.

use portico_machinery::{Cursor, Node, Object, names};

const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX: &str = "kube-api-access-";
/// Lifetime of a token in a pod, in seconds; upstream recognizes these tokens by this value.
const EXPIRATION: i64 = 3607;

/// Mounts the token in containers that have no mount at the path, and adds the volume to the spec if a container needs it.
pub(super) fn mount(spec: &mut Object) {
    let existing = spec
        .at(&["volumes"])
        .items()
        .map(|volume| volume.field("name").str().to_owned())
        .find(|name| name.starts_with(VOLUME_PREFIX));
    let name = existing.clone().unwrap_or_else(|| names::generate(VOLUME_PREFIX));
    let mut needed = false;
    for list in ["initContainers", "containers"] {
        spec.edit_each(&[list], |container| {
            let is_token_mount = |mount: Cursor<'_>| mount.field("mountPath").str() == MOUNT_PATH;
            if !container.at(&["volumeMounts"]).items().any(is_token_mount) {
                needed = true;
                container.push_node(&["volumeMounts"], mount_of(&name));
            }
        });
    }
    if needed && existing.is_none() {
        spec.push_node(&["volumes"], volume(&name));
    }
}

fn mount_of(name: &str) -> Node {
    let mut mount = Object::default();
    mount.set(&["name"], name);
    mount.set(&["readOnly"], true);
    mount.set(&["mountPath"], MOUNT_PATH);
    mount.into_node()
}

fn volume(name: &str) -> Node {
    let [mut token, mut authority, mut namespace] = [Object::default(), Object::default(), Object::default()];
    token.set(&["serviceAccountToken", "expirationSeconds"], EXPIRATION);
    token.set(&["serviceAccountToken", "path"], "token");
    let mut item = Object::default();
    item.set(&["key"], "ca.crt");
    item.set(&["path"], "ca.crt");
    authority.set(&["configMap", "name"], "kube-root-ca.crt");
    authority.push_node(&["configMap", "items"], item.into_node());
    let mut item = Object::default();
    item.set(&["path"], "namespace");
    item.set(&["fieldRef", "apiVersion"], "v1");
    item.set(&["fieldRef", "fieldPath"], "metadata.namespace");
    namespace.push_node(&["downwardAPI", "items"], item.into_node());
    let mut volume = Object::default();
    volume.set(&["name"], name);
    volume.set(&["projected", "defaultMode"], 0o644);
    for source in [token, authority, namespace] {
        volume.push_node(&["projected", "sources"], source.into_node());
    }
    volume.into_node()
}
