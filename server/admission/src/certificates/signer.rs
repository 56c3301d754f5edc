//! Permission for a signer name (upstream's `IsAuthorizedForSignerName`).

use portico_machinery::{Attributes, GroupResource, UserInfo};
use portico_registry::Objects;

/// True if a user may use a verb on a signer, by the name of the signer or as one of all signers of its domain.
pub(super) async fn is_authorized(objects: &Objects, user: &UserInfo, verb: &str, signer: &str) -> bool {
    let signers = GroupResource::new("certificates.k8s.io", "signers");
    let domain = format!("{}/*", signer.split('/').next().unwrap_or_default());
    for name in [signer, &domain] {
        let attributes = Attributes::resource(user.clone(), verb, &signers, "", name).with_version("*");
        if objects.authorizer.decide(&attributes).await.is_allowed() {
            return true;
        }
    }
    false
}
