//! What issues and checks tokens, and the names that tokens stand for.

use std::sync::Arc;

use portico_auth::authn::TokenAuthenticator;
use portico_auth::authn::remote::RemoteTokens;
use portico_machinery::{GroupResource, UserInfo};
use portico_registry::{Objects, Result, Stored};

use crate::signer::{CurrentKeys, Signer};

/// Objects deleted longer ago than this are gone, whatever still holds them, in seconds.
const GONE_AFTER: i64 = portico_auth::jwt::LEEWAY;

/// What issues and checks tokens.
pub struct Identity {
    /// Issuers, audiences and public keys.
    pub keys: Arc<CurrentKeys>,
    /// Who signs.
    pub signer: Signer,
    /// The longest life of a token in seconds, when there is a limit (`--service-account-max-token-expiration`).
    pub max_expiration: Option<i64>,
    /// Whether tokens of pods live on for a year past the time that they ask for
    /// (`--service-account-extend-token-expiration`).
    pub extend_expiration: bool,
    /// How long they live then, in seconds: [`EXTENDED_LIFE`](crate::EXTENDED_LIFE), or less where the signer allows no more.
    pub extended_life: i64,
    /// Whether legacy tokens must stand in their Secret (`--service-account-lookup`).
    pub lookup: bool,
    /// Whether bootstrap tokens are trusted (`--enable-bootstrap-token-auth`).
    pub bootstrap_tokens: bool,
    /// Tokens that are known without any object.
    pub fixed: Vec<Arc<dyn TokenAuthenticator>>,
    /// Who else knows tokens, in the order in which they are asked.
    pub remote: Vec<Arc<dyn RemoteTokens>>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("keys", &self.keys).finish_non_exhaustive()
    }
}

/// The name and the groups of a service account.
pub(crate) fn service_account(namespace: &str, name: &str, uid: &str) -> UserInfo {
    let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    let mut user = UserInfo::new(user_name(namespace, name), groups);
    uid.clone_into(&mut user.uid);
    user
}

/// `system:serviceaccount:NAMESPACE:NAME`
pub fn user_name(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

/// How audit and extra name a token by its id.
pub fn credential_id(jti: &str) -> String {
    format!("JTI={jti}")
}

/// An object of a core kind, or its 404.
pub(crate) async fn find(objects: &Objects, resource: &str, namespace: &str, name: &str) -> Result<Stored> {
    let served = objects.served(&GroupResource::new("", resource))?;
    Ok(objects.recent.stored(objects.get(&served, namespace, name).await?))
}

/// Whether an object was deleted so long ago that what is bound to it is void.
pub(crate) fn is_gone(stored: &Stored, now: i64) -> bool {
    let deleted = stored.object().deletion_timestamp().and_then(portico_machinery::time::parse);
    deleted.is_some_and(|at| at.as_second() < now - GONE_AFTER)
}
