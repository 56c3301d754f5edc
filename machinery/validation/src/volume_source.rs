//! Validation of the source of a persistent volume: exactly one, with its required fields.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use crate::Errors;
use crate::pod_spec::{VolumeHolder, host_path, volume_source};
use crate::{checks, paths, values};

/// Fields of a PersistentVolumeSpec that contain a source, in the order of upstream's validation.
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

/// Validates the source in a PersistentVolumeSpec. `name` is the name of the volume.
pub fn validate(spec: &Cursor<'_>, name: &str, errors: &mut Errors) {
    let mut source_count = 0;
    for field in SOURCES {
        let source = spec.field(field);
        if !source.is_present() {
            continue;
        }
        source_count += 1;
        if source_count > 1 && field != "flexVolume" {
            let display_name = if field == "cephfs" { "cephFS" } else { field };
            let path = spec.path().child(display_name);
            errors.push(Error::forbidden(&path, "may not specify more than 1 volume type"));
        } else {
            validate_source(field, &source, spec, name, errors);
        }
    }
    if source_count == 0 {
        errors.push(spec.required("must specify a volume type"));
    }
}

fn validate_source(field: &str, here: &Cursor<'_>, spec: &Cursor<'_>, name: &str, errors: &mut Errors) {
    match field {
        "hostPath" => host_path(here, errors),
        "csi" => csi(here, errors),
        "local" => {
            let path = here.field("path");
            if checks::not_empty(&path, errors) {
                paths::no_parent_reference(&path, &path.path(), errors);
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
