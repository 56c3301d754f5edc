//! What names a caller, and what that makes of the user.

use std::sync::Arc;

use portico_machinery::UserInfo;

/// Groups of this prefix are Portico's own; every identity that the internal CA does not vouch for loses them.
pub const RESERVED_GROUP_PREFIX: &str = "system:portico:";

/// What named the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A front proxy's headers.
    RequestHeader,
    /// A certificate of `--client-ca-file`, or of the CA that signs certificate requests.
    ClientCertificate,
    /// A certificate of Portico's internal CA: administrators and facades.
    InternalCertificate,
    /// A bearer token.
    BearerToken,
    /// A bearer token sent as a WebSocket subprotocol.
    WebSocketToken,
}

/// The user with the group of everybody who proved who they are, and without Portico's own groups unless the internal
/// CA vouches for them. Costs a look at the groups when the user is complete already.
pub(super) fn completed(mut user: Arc<UserInfo>, method: Method) -> Arc<UserInfo> {
    let reserved = |group: &String| group.starts_with(RESERVED_GROUP_PREFIX);
    if method != Method::InternalCertificate && user.groups.iter().any(reserved) {
        Arc::make_mut(&mut user).groups.retain(|group| !reserved(group));
    }
    if user.lacks_authenticated() {
        let user = Arc::make_mut(&mut user);
        *user = std::mem::take(user).authenticated();
    }
    user
}
