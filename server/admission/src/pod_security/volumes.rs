//! Checks of a pod's volumes.

use std::collections::BTreeSet;

use portico_machinery::Cursor;

use super::violation::{Pod, Violation, describe_names};

/// Volume sources that every pod may have.
const UNRESTRICTED: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// All other volume sources.
const RESTRICTED: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

fn has(volume: &Cursor<'_>, source: &str) -> bool {
    volume.field(source).is_present()
}

pub(super) fn host_paths(pod: &Pod<'_>) -> Option<Violation> {
    let volumes = pod.spec.field("volumes").items().filter(|volume| has(volume, "hostPath"));
    let names: Vec<&str> = volumes.map(|volume| volume.field("name").str()).collect();
    (!names.is_empty())
        .then(|| Violation::new("hostPath volumes", describe_names("volume", "volumes", &names)))
}

pub(super) fn restricted(pod: &Pod<'_>) -> Option<Violation> {
    let (mut names, mut kinds) = (Vec::new(), BTreeSet::new());
    for volume in pod.spec.field("volumes").items() {
        if !UNRESTRICTED.iter().any(|source| has(&volume, source)) {
            names.push(volume.field("name").str());
            let kind = RESTRICTED.into_iter().find(|source| has(&volume, source));
            kinds.insert(kind.unwrap_or("unknown"));
        }
    }
    (!names.is_empty()).then(|| {
        let kinds: Vec<&str> = kinds.into_iter().collect();
        let uses = if names.len() == 1 { "uses" } else { "use" };
        let volume_types = describe_names("restricted volume type", "restricted volume types", &kinds);
        let detail = format!("{} {uses} {volume_types}", describe_names("volume", "volumes", &names));
        Violation::new("restricted volume types", detail)
    })
}
