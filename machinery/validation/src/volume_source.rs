//! Source of a persistent volume: exactly one, and the fields that each kind of source must have.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use crate::Errors;
use crate::pod_spec::{VolumeHolder, host_path, volume_source};
use crate::{checks, paths, values};

/// Fields of a PersistentVolumeSpec that are a source, in the order in which upstream validates them.
pub const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// Validates the source in a PersistentVolumeSpec. `name` is the volume's.
pub fn validate(spec: &Cursor<'_>, name: &str, errors: &mut Errors) {
    let mut found = 0;
    for field in SOURCES {
        let here = spec.field(field);
        if !here.is_present() {
            continue;
        }
        found += 1;
        if found > 1 && field != "flexVolume" {
            let shown = if field == "cephfs" { "cephFS" } else { field };
            let path = spec.path().child(shown);
            errors.push(Error::forbidden(&path, "may not specify more than 1 volume type"));
        } else {
            one(field, &here, spec, name, errors);
        }
    }
    if found == 0 {
        errors.push(spec.required("must specify a volume type"));
    }
}

fn one(field: &str, here: &Cursor<'_>, spec: &Cursor<'_>, name: &str, errors: &mut Errors) {
    match field {
        "hostPath" => host_path(here, errors),
        "csi" => csi(here, errors),
        "local" => {
            let path = here.field("path");
            if checks::not_empty(&path, errors) {
                paths::no_climbing(&path, &path.path(), errors);
            }
            let affinity = spec.field("nodeAffinity");
            if !affinity.is_present() {
                errors.push(affinity.required("Local volume requires node affinity"));
            }
        }
        _ => volume_source(field, here, VolumeHolder::PersistentVolume(name), errors),
    }
}

fn csi(here: &Cursor<'_>, errors: &mut Errors) {
    const SECRETS: [&str; 4] = [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ];
    values::driver_name(&here.field("driver"), errors);
    checks::not_empty(&here.field("volumeHandle"), errors);
    for secret in SECRETS.map(|field| here.field(field)).iter().filter(|secret| secret.is_present()) {
        checks::required(&secret.field("name"), names::dns1123_subdomain, errors);
        checks::required(&secret.field("namespace"), values::label, errors);
    }
}
