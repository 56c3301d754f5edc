//! The warnings for whoever writes a volume.

use portico_machinery::{Cursor, Object};

use crate::strategies::core::storage_cells;
use portico_validation::node_labels;

const RECYCLE: &str = "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.";
/// Where the mount options once stood.
pub(super) const OLD_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
/// Sources that nothing serves any more: the field, what it is called, since when.
const OLD_SOURCES: [(&str, &str, &str); 6] = [
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// All of them, in order.
pub(super) fn of(volume: &Object) -> Vec<String> {
    let spec = volume.at(&["spec"]);
    let mut warnings = Vec::new();
    warnings.extend(storage_cells::old_class_warning(volume));
    if volume.annotation(OLD_OPTIONS).is_some() {
        warnings.push(format!(
            "metadata.annotations[{OLD_OPTIONS}]: deprecated since v1.31; use \"mountOptions\" attribute instead"
        ));
    }
    if spec.field("persistentVolumeReclaimPolicy").str() == "Recycle" {
        warnings.push(RECYCLE.to_owned());
    }
    node_affinity(&spec.field("nodeAffinity").field("required").field("nodeSelectorTerms"), &mut warnings);
    for (field, shown, text) in OLD_SOURCES {
        if spec.field(field).is_present() {
            warnings.push(format!("spec.{shown}: {text}"));
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
