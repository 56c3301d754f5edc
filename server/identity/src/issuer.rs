//! Issuer and verifier of tokens, and the users of service accounts.

use std::sync::Arc;

use portico_auth::authn::TokenAuthenticator;
use portico_auth::authn::token_webhook::RemoteTokenAuthenticator;
use portico_machinery::{GroupResource, UserInfo};
use portico_registry::{Objects, Result, StoredObject};

use crate::signer::{CurrentKeys, Signer};

/// Seconds after its deletion timestamp at which an object counts as deleted, even if finalizers keep it.
const DELETION_LEEWAY: i64 = portico_auth::jwt::LEEWAY;

/// Issuer and verifier of tokens.
pub struct TokenAuthority {
    /// Issuers, audiences and public keys.
    pub keys: Arc<CurrentKeys>,
    /// Signer of issued tokens.
    pub signer: Signer,
    /// Maximum lifetime of a token in seconds, if there is one (`--service-account-max-token-expiration`).
    pub max_expiration: Option<i64>,
    /// True if tokens of pods are valid for [`Self::extended_lifetime`] instead of
    /// the requested time (`--service-account-extend-token-expiration`).
    pub extend_expiration: bool,
    /// Extended lifetime in seconds: [`EXTENDED_LIFETIME`](crate::EXTENDED_LIFETIME), or less if the signer limits it.
    pub extended_lifetime: i64,
    /// True if legacy tokens must be present in their Secret (`--service-account-lookup`).
    pub lookup: bool,
    /// True if bootstrap tokens are accepted (`--enable-bootstrap-token-auth`).
    pub bootstrap_tokens: bool,
    /// Authenticators of tokens that do not depend on objects.
    pub static_authenticators: Vec<Arc<dyn TokenAuthenticator>>,
    /// Remote authenticators, in the order in which they are called.
    pub remote_authenticators: Vec<Arc<dyn RemoteTokenAuthenticator>>,
}

impl std::fmt::Debug for TokenAuthority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenAuthority").field("keys", &self.keys).finish_non_exhaustive()
    }
}

/// User of a service account, with its groups.
pub(crate) fn service_account(namespace: &str, name: &str, uid: &str) -> UserInfo {
    let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    let mut user = UserInfo::new(user_name(namespace, name), groups);
    uid.clone_into(&mut user.uid);
    user
}

/// User name of a service account: `system:serviceaccount:NAMESPACE:NAME`.
pub fn user_name(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

/// Credential ID of a token in audit events and extra fields.
pub fn credential_id(jti: &str) -> String {
    format!("JTI={jti}")
}

/// Reads an object of a core kind; status 404 if it is absent.
pub(crate) async fn read_core_object(
    objects: &Objects,
    resource: &str,
    namespace: &str,
    name: &str,
) -> Result<StoredObject> {
    let served = objects.served_resource(&GroupResource::new("", resource))?;
    Ok(objects.recent.get_or_insert(objects.get(&served, namespace, name).await?))
}

/// True if an object was deleted so long ago that tokens bound to it are invalid.
pub(crate) fn is_past_deletion_leeway(stored: &StoredObject, now: i64) -> bool {
    let deleted = stored.object().deletion_timestamp().and_then(portico_machinery::time::parse);
    deleted.is_some_and(|at| at.as_second() < now - DELETION_LEEWAY)
}
