//! PersistentVolumeClaimResize: a bound claim may grow only if its class supports volume expansion.

use portico_machinery::{Object, Quantity};

use portico_registry::{Objects, Operation};

use crate::plugin::{Plugin, ResourcePattern, ValidationFuture, ValidationRequest};

const REFUSED: &str = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
const UNBOUND: &str = "Only bound persistent volume claims can be expanded";
/// Annotation that named the class before the field existed.
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const CLASS: &str = "spec.storageClassName";

/// PersistentVolumeClaimResize plugin.
pub(super) struct PersistentVolumeClaimResize;

impl Plugin for PersistentVolumeClaimResize {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[("", "persistentvolumeclaims", "")]
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Update]
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            let Some(old) = request.old.filter(|old| size(request.new) > size(old)) else {
                return Ok(Vec::new());
            };
            if old.str_at("status.phase") != "Bound" {
                return Err(request.forbidden(UNBOUND));
            }
            let class = class(request.new);
            let found = match class.is_empty() || class != self::class(old) {
                true => None,
                false => objects.object_of("storage.k8s.io", "storageclasses", "", class).await?,
            };
            match found {
                Some(class) if class.at(&["allowVolumeExpansion"]).bool() => Ok(Vec::new()),
                _ => Err(request.forbidden(REFUSED)),
            }
        })
    }
}

/// Returns the class of a claim (upstream's `GetPersistentVolumeClaimClass`).
fn class(claim: &Object) -> &str {
    claim.annotation(BETA_CLASS).unwrap_or_else(|| claim.str_at(CLASS))
}

fn size(claim: &Object) -> Quantity {
    claim.at(&["spec", "resources", "requests", "storage"]).quantity().unwrap_or_default()
}
