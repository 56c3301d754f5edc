//! ClusterTrustBundleAttest: writing the trust bundle of a signer requires the permission to attest for the signer.

use portico_machinery::Object;
use portico_registry::Objects;

use super::signer;
use crate::plugin::{Plugin, ResourcePattern, ValidationFuture, ValidationRequest};

/// ClusterTrustBundleAttest plugin.
pub(crate) struct ClusterTrustBundleAttest;

impl Plugin for ClusterTrustBundleAttest {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[("certificates.k8s.io", "clustertrustbundles", "")]
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            let signer = request.new.str_at("spec.signerName");
            let unchanged = request.old.is_some_and(|old| is_only_gc_change(request.new, old));
            if signer.is_empty()
                || unchanged
                || signer::is_authorized(objects, &request.attributes.context.user, "attest", signer).await
            {
                return Ok(Vec::new());
            }
            Err(request.forbidden(&format!("user not permitted to attest for signerName {signer:?}")))
        })
    }
}

/// True if two states differ only in fields that garbage collection and storage migration change (upstream's
/// `IsOnlyMutatingGCFields`).
fn is_only_gc_change(new: &Object, old: &Object) -> bool {
    let bare = |object: &Object| {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
            object.remove(&["metadata", field]);
        }
        object
    };
    bare(new) == bare(old)
}
