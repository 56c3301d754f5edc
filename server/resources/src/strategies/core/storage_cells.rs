//! What persistent volumes and claims show of themselves in the same way.

use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object};

/// Where the name of a class once stood.
pub(super) const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// The ways to mount, in the order in which they are shown.
const MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];

/// The warning about the old annotation.
pub(super) fn old_class_warning(object: &Object) -> Option<String> {
    object.annotation(OLD_CLASS).map(|_| {
        format!("metadata.annotations[{OLD_CLASS}]: deprecated since v1.8; use \"storageClassName\" attribute instead")
    })
}

/// `RWO,ROX`: each mode once.
pub(super) fn access_modes(modes: &Cursor<'_>) -> Cell {
    let has = |wanted: &str| modes.items().any(|mode| mode.str() == wanted);
    let shown: Vec<&str> = MODES.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect();
    Cell::text(shown.join(","))
}

/// The phase, unless the object is on its way out.
pub(super) fn phase(object: &Object) -> Cell {
    Cell::text(if object.deletion_timestamp().is_some() {
        "Terminating"
    } else {
        object.str_at("status.phase")
    })
}

/// The class, old annotation first.
pub(super) fn class(object: &Object) -> Cell {
    Cell::text(object.annotation(OLD_CLASS).unwrap_or_else(|| object.str_at("spec.storageClassName")))
}

/// How much can be stored; `0` when that is not set.
pub(super) fn capacity(list: &Cursor<'_>) -> Cell {
    Cell::text(list.key("storage").quantity().map_or_else(|| "0".to_owned(), |amount| amount.to_string()))
}
