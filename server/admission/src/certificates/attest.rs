//! ClusterTrustBundleAttest: writing the trust bundle of a signer requires the permission to attest for the signer.

use portico_machinery::Object;
use portico_registry::Objects;

use super::signer;
use crate::plugin::{Plugin, Target, Validating, ValidationRequest};

/// ClusterTrustBundleAttest plugin.
pub(crate) struct ClusterTrustBundleAttest;

impl Plugin for ClusterTrustBundleAttest {
    fn targets(&self) -> &'static [Target] {
        &[("certificates.k8s.io", "clustertrustbundles", "")]
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> Validating<'a> {
        Box::pin(async move {
            let signer = request.new.str_at("spec.signerName");
            let unchanged = request.old.is_some_and(|old| attests_the_same(request.new, old));
            if signer.is_empty()
                || unchanged
                || signer::may(objects, &request.attributes.context.user, "attest", signer).await
            {
                return Ok(Vec::new());
            }
            Err(request.forbidden(&format!("user not permitted to attest for signerName {signer:?}")))
        })
    }
}

/// True if two states differ only in fields that garbage collection and storage migration change (upstream's
/// `IsOnlyMutatingGCFields`).
fn attests_the_same(new: &Object, old: &Object) -> bool {
    let bare = |object: &Object| {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
            object.remove(&["metadata", field]);
        }
        object
    };
    bare(new) == bare(old)
}
