//! Table cells that PersistentVolumes and PersistentVolumeClaims share.

use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object};

/// Annotation that preceded the field for the storage class.
pub(super) const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
/// Access modes, in the order in which they are printed.
const MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];

/// Returns the warning about the deprecated annotation.
pub(super) fn class_annotation_warning(object: &Object) -> Option<String> {
    object.annotation(CLASS_ANNOTATION).map(|_| {
        format!("metadata.annotations[{CLASS_ANNOTATION}]: deprecated since v1.8; use \"storageClassName\" attribute instead")
    })
}

/// Cell with the access modes without duplicates, such as `RWO,ROX`.
pub(super) fn access_modes(modes: &Cursor<'_>) -> Cell {
    let has = |access_mode: &str| modes.items().any(|mode| mode.str() == access_mode);
    let short_names: Vec<&str> =
        MODES.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect();
    Cell::text(short_names.join(","))
}

/// Cell with the phase, or `Terminating`.
pub(super) fn phase(object: &Object) -> Cell {
    Cell::text(if object.deletion_timestamp().is_some() {
        "Terminating"
    } else {
        object.str_at("status.phase")
    })
}

/// Cell with the storage class. The annotation takes precedence.
pub(super) fn class(object: &Object) -> Cell {
    Cell::text(object.annotation(CLASS_ANNOTATION).unwrap_or_else(|| object.str_at("spec.storageClassName")))
}

/// Cell with the storage capacity; `0` if it is not set.
pub(super) fn capacity(list: &Cursor<'_>) -> Cell {
    Cell::text(list.key("storage").quantity().map_or_else(|| "0".to_owned(), |amount| amount.to_string()))
}
