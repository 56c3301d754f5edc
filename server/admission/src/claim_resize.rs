//! PersistentVolumeClaimResize: a bound claim grows only where its class says that volumes can.

use portico_machinery::{Object, Quantity};

use crate::plugin::{Mutating, MutationRequest, Plugin, Target};
use portico_registry::Objects;

const REFUSED: &str = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
const CLASS: &str = "spec.storageClassName";

/// The plugin.
pub(super) struct PersistentVolumeClaimResize;

impl Plugin for PersistentVolumeClaimResize {
    fn targets(&self) -> &'static [Target] {
        &[("", "persistentvolumeclaims", "")]
    }

    fn mutate<'a>(&'a self, objects: &'a Objects, change: MutationRequest<'a>) -> Mutating<'a> {
        Box::pin(async move {
            // Validation refuses the others in words of its own.
            let bound = |old: &&Object| old.str_at("status.phase") == "Bound";
            let Some(old) = change.old.filter(bound) else { return Ok(()) };
            if size(change.new) <= size(old) {
                return Ok(());
            }
            let class = change.new.str_at(CLASS);
            if class.is_empty() || class != old.str_at(CLASS) {
                return Err(change.forbidden(REFUSED));
            }
            let found = objects.object_of("storage.k8s.io", "storageclasses", "", class).await?;
            match found {
                Some(class) if class.at(&["allowVolumeExpansion"]).bool() => Ok(()),
                _ => Err(change.forbidden(REFUSED)),
            }
        })
    }
}

fn size(claim: &Object) -> Quantity {
    claim.at(&["spec", "resources", "requests", "storage"]).quantity().unwrap_or_default()
}
