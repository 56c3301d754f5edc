//! Authentication methods, and the groups that follow from them.

use std::sync::Arc;

use portico_machinery::UserInfo;

/// Prefix of Portico's groups. They are removed from every identity that the internal CA does not certify.
pub const RESERVED_GROUP_PREFIX: &str = "system:portico:";

/// Method by which the caller was authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthnMethod {
    /// Headers of a front proxy.
    RequestHeader,
    /// Certificate of `--client-ca-file`, or of the CA that signs certificate requests.
    ClientCertificate,
    /// Certificate of Portico's internal CA: administrators and facades.
    InternalCertificate,
    /// Bearer token.
    BearerToken,
    /// Bearer token passed as a WebSocket subprotocol.
    WebSocketToken,
}

/// Adds the group of authenticated users, and removes Portico's groups unless the internal CA certified them. Only checks the
/// groups if the user is already complete.
pub(super) fn complete_user(mut user: Arc<UserInfo>, method: AuthnMethod) -> Arc<UserInfo> {
    let reserved = |group: &String| group.starts_with(RESERVED_GROUP_PREFIX);
    if method != AuthnMethod::InternalCertificate && user.groups.iter().any(reserved) {
        Arc::make_mut(&mut user).groups.retain(|group| !reserved(group));
    }
    if user.needs_authenticated_group() {
        let user = Arc::make_mut(&mut user);
        *user = std::mem::take(user).with_authenticated_group();
    }
    user
}
