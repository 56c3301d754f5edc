//! Warnings about PersistentVolumes.

use portico_machinery::{Cursor, Object};

use crate::strategies::core::storage_cells;
use portico_validation::node_labels;

const RECYCLE: &str = "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.";
/// Annotation that preceded the field for mount options.
pub(super) const MOUNT_OPTIONS_ANNOTATION: &str = "volume.beta.kubernetes.io/mount-options";
/// Volume sources without support: field, name, and state by version.
const UNSUPPORTED_SOURCES: [(&str, &str, &str); 6] = [
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Returns all warnings about a volume, in upstream's order.
pub(super) fn volume_warnings(volume: &Object) -> Vec<String> {
    let spec = volume.at(&["spec"]);
    let mut warnings = Vec::new();
    warnings.extend(storage_cells::class_annotation_warning(volume));
    if volume.annotation(MOUNT_OPTIONS_ANNOTATION).is_some() {
        warnings.push(format!(
            "metadata.annotations[{MOUNT_OPTIONS_ANNOTATION}]: deprecated since v1.31; use \"mountOptions\" attribute instead"
        ));
    }
    if spec.field("persistentVolumeReclaimPolicy").str() == "Recycle" {
        warnings.push(RECYCLE.to_owned());
    }
    node_affinity(&spec.field("nodeAffinity").field("required").field("nodeSelectorTerms"), &mut warnings);
    for (field, reported_name, text) in UNSUPPORTED_SOURCES {
        if spec.field(field).is_present() {
            warnings.push(format!("spec.{reported_name}: {text}"));
        }
    }
    warnings
}

fn node_affinity(terms: &Cursor<'_>, warnings: &mut Vec<String>) {
    for term in terms.items() {
        for expression in term.field("matchExpressions").items() {
            let key = expression.field("key");
            if let Some(text) = node_labels::deprecation(key.str()) {
                warnings.push(format!("{}: {} is {text}", key.path(), key.str()));
            }
        }
    }
}
