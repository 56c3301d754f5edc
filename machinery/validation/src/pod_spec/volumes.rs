//! Volumes of a pod: exactly one source each, and what each source must say.

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
use super::parts::Of;
use crate::Errors;
use crate::{checks, paths, values};

/// Sources in the order in which upstream looks at them, with the name that its errors use.
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

/// The volumes without errors: the others count as absent.
pub(super) struct Volumes<'a>(HashMap<&'a str, Cursor<'a>>);

impl<'a> Volumes<'a> {
    /// The volume of this name.
    pub(super) fn get(&self, name: &str) -> Option<&Cursor<'a>> {
        self.0.get(name)
    }

    /// Whether there is one of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

/// Validates all volumes and gives back the good ones.
pub(super) fn validate<'a>(list: &Cursor<'a>, of: Of<'_>, errors: &mut Errors) -> Volumes<'a> {
    let mut good = Volumes(HashMap::new());
    let created = claims::created_claims(list, of);
    for volume in list.items() {
        let mut found = Errors::new();
        source(&volume, of, &mut found);
        let name = volume.field("name");
        if checks::not_empty(&name, &mut found) {
            found.extend(
                values::label(name.str()).iter().map(|m| Error::invalid(&name.path(), name.str(), m)),
            );
        }
        if good.has(name.str()) {
            found.push(name.duplicate());
        }
        let claim = volume.field("persistentVolumeClaim").field("claimName");
        if found.is_empty() {
            good.0.insert(name.str(), volume);
        }
        errors.append(&mut found);
        if created.contains(claim.str()) {
            errors.push(claim.invalid("must not reference a PVC that gets created for an ephemeral volume"));
        }
    }
    good
}

fn source(volume: &Cursor<'_>, of: Of<'_>, errors: &mut Errors) {
    let mut count = 0;
    for (field, shown) in SOURCES {
        let here = volume.field(field);
        if !here.is_present() {
            continue;
        }
        if count > 0 {
            let path = volume.path().child(shown);
            errors.push(Error::forbidden(&path, "may not specify more than 1 volume type"));
        } else {
            count += 1;
            one(field, &here, volume, of, errors);
        }
        if field == "iscsi" {
            iscsi::interface(volume, errors);
        }
    }
    if count == 0 {
        errors.push(volume.required("must specify a volume type"));
    }
}

fn one(field: &str, here: &Cursor<'_>, volume: &Cursor<'_>, of: Of<'_>, errors: &mut Errors) {
    match field {
        "emptyDir" => {
            if here.field("sizeLimit").quantity().is_some_and(|limit| limit.is_negative()) {
                errors.push(
                    here.field("sizeLimit").forbidden("SizeLimit field must be a valid resource quantity"),
                );
            }
        }
        "hostPath" => host_path(here, errors),
        "secret" => files::keyed(here, "secretName", errors),
        "configMap" => files::keyed(here, "name", errors),
        "downwardAPI" => files::downward(here, errors),
        "projected" => files::projected(here, errors),
        "persistentVolumeClaim" => {
            checks::not_empty(&here.field("claimName"), errors);
        }
        "ephemeral" => claims::ephemeral(here, volume, of, errors),
        "image" => {
            if matches!(of, Of::Pod(_)) {
                checks::not_empty(&here.field("reference"), errors);
            }
            checks::required_one_of(&here.field("pullPolicy"), &["Always", "IfNotPresent", "Never"], errors);
        }
        _ => network::source(field, here, Holder::Pod, errors),
    }
}

/// A path on the node.
pub fn host_path(here: &Cursor<'_>, errors: &mut Errors) {
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    let path = here.field("path");
    if checks::not_empty(&path, errors) {
        paths::no_climbing(&path, &path.path(), errors);
        checks::one_of(&here.field("type"), &TYPES, errors);
    }
}
