//! Metadata in writes of subresources that change the spec (upstream's `ResetObjectMetaForStatus`).

use portico_machinery::Object;

/// Copies the new metadata except for the fields that such writes cannot change.
pub(super) fn copy_mutable(target: &mut Object, new: &Object, old: &Object) {
    target.copy_from(new, &["metadata"]);
    for field in ["deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences"]
    {
        target.copy_from(old, &["metadata", field]);
    }
}
