//! Permission by a signer's name (upstream's `IsAuthorizedForSignerName`).

use portico_machinery::{Attributes, GroupResource, UserInfo};
use portico_registry::Objects;

/// Whether a user may do this for a signer: by its own name, or for all signers of its domain.
pub(super) async fn may(objects: &Objects, user: &UserInfo, verb: &str, signer: &str) -> bool {
    let signers = GroupResource::new("certificates.k8s.io", "signers");
    let domain = format!("{}/*", signer.split('/').next().unwrap_or_default());
    for name in [signer, &domain] {
        let question = Attributes::resource(user.clone(), verb, &signers, "", name).with_version("*");
        if objects.authorizer.decide(&question).await.allowed() {
            return true;
        }
    }
    false
}
