//! Metadata in writes of subresources that change the spec (upstream's `ResetObjectMetaForStatus`).

use portico_machinery::Object;

/// Copies the new metadata but for the fields that stay as they are.
pub(super) fn keep(kept: &mut Object, new: &Object, old: &Object) {
    kept.copy_from(new, &["metadata"]);
    for field in ["deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences"]
    {
        kept.copy_from(old, &["metadata", field]);
    }
}
