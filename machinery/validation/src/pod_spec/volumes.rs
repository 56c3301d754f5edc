//! Validation of the volumes of a pod: exactly one source each, with valid fields.

pub(super) mod claims;
mod files;
pub(super) mod holder;
mod iscsi;
pub(super) mod network;
mod quobyte;

use std::collections::HashMap;

use portico_machinery::Cursor;
use portico_machinery::field::Error;

use self::holder::Holder;
use super::parts::SpecOwner;
use crate::Errors;
use crate::{checks, paths, values};

/// Sources in upstream's validation order, with the name that errors contain.
const SOURCES: [(&str, &str); 30] = [
    ("emptyDir", "emptyDir"),
    ("hostPath", "hostPath"),
    ("gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("quobyte", "quobyte"),
    ("downwardAPI", "downwarAPI"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("configMap", "configMap"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scaleIO", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
];

/// Valid volumes by name; those with errors count as absent.
pub(super) struct ValidVolumes<'a>(HashMap<&'a str, Cursor<'a>>);

impl<'a> ValidVolumes<'a> {
    /// Returns the volume with a name.
    pub(super) fn get(&self, name: &str) -> Option<&Cursor<'a>> {
        self.0.get(name)
    }

    /// True if there is a volume with this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

/// Validates all volumes and returns the valid ones.
pub(super) fn validate<'a>(list: &Cursor<'a>, owner: SpecOwner<'_>, errors: &mut Errors) -> ValidVolumes<'a> {
    let mut valid = ValidVolumes(HashMap::new());
    let created = claims::created_claims(list, owner);
    for volume in list.items() {
        let mut found = Errors::new();
        validate_volume(&volume, owner, &mut found);
        let name = volume.field("name");
        if checks::not_empty(&name, &mut found) {
            found.extend(
                values::label(name.str()).iter().map(|m| Error::invalid(&name.path(), name.str(), m)),
            );
        }
        if valid.has(name.str()) {
            found.push(name.duplicate());
        }
        let claim = volume.field("persistentVolumeClaim").field("claimName");
        if found.is_empty() {
            valid.0.insert(name.str(), volume);
        }
        errors.append(&mut found);
        if created.contains(claim.str()) {
            errors.push(claim.invalid("must not reference a PVC that gets created for an ephemeral volume"));
        }
    }
    valid
}

fn validate_volume(volume: &Cursor<'_>, owner: SpecOwner<'_>, errors: &mut Errors) {
    let mut count = 0;
    for (field, shown) in SOURCES {
        let source = volume.field(field);
        if !source.is_present() {
            continue;
        }
        if count > 0 {
            let path = volume.path().child(shown);
            errors.push(Error::forbidden(&path, "may not specify more than 1 volume type"));
        } else {
            count += 1;
            validate_source(field, &source, volume, owner, errors);
        }
        if field == "iscsi" {
            iscsi::interface(volume, errors);
        }
    }
    if count == 0 {
        errors.push(volume.required("must specify a volume type"));
    }
}

fn validate_source(
    field: &str,
    source: &Cursor<'_>,
    volume: &Cursor<'_>,
    owner: SpecOwner<'_>,
    errors: &mut Errors,
) {
    match field {
        "emptyDir" => {
            if source.field("sizeLimit").quantity().is_some_and(|limit| limit.is_negative()) {
                errors.push(
                    source.field("sizeLimit").forbidden("SizeLimit field must be a valid resource quantity"),
                );
            }
        }
        "hostPath" => host_path(source, errors),
        "secret" => files::secret_or_config_map(source, "secretName", errors),
        "configMap" => files::secret_or_config_map(source, "name", errors),
        "downwardAPI" => files::downward(source, errors),
        "projected" => files::projected(source, errors),
        "persistentVolumeClaim" => {
            checks::not_empty(&source.field("claimName"), errors);
        }
        "ephemeral" => claims::ephemeral(source, volume, owner, errors),
        "image" => {
            if matches!(owner, SpecOwner::Pod(_)) {
                checks::not_empty(&source.field("reference"), errors);
            }
            checks::required_one_of(
                &source.field("pullPolicy"),
                &["Always", "IfNotPresent", "Never"],
                errors,
            );
        }
        _ => network::source(field, source, Holder::Pod, errors),
    }
}

/// Validates a path on the node.
pub fn host_path(here: &Cursor<'_>, errors: &mut Errors) {
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    let path = here.field("path");
    if checks::not_empty(&path, errors) {
        paths::no_parent_reference(&path, &path.path(), errors);
        checks::one_of(&here.field("type"), &TYPES, errors);
    }
}
