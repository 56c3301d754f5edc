//! Authentication of tokens by all authenticators, in upstream's order.

use std::sync::Arc;

use portico_auth::authn::token_webhook::own_audiences;
use portico_auth::authn::{TokenRefusal, TokenReviewBackend, TokenReviewFuture};
use portico_machinery::{UserInfo, aggregate};

use crate::issuer::TokenAuthority;
use crate::{bootstrap_token, bound_token, legacy_token};
use portico_registry::{Registry, Verbs};

const INVALID_TOKEN: &str = "invalid bearer token";

/// Valid token.
pub struct AuthenticatedToken {
    /// User of the token, including the group `system:authenticated`.
    pub user: UserInfo,
    /// Requested audiences for which the token is valid.
    pub audiences: Vec<String>,
}

/// Authenticates a token for these audiences, or for those of this API if there are none. Returns upstream's message if the token
/// is invalid.
pub(crate) async fn authenticate(
    verbs: &Verbs,
    authority: &TokenAuthority,
    token: &str,
    requested_audiences: &[String],
) -> Result<AuthenticatedToken, String> {
    let objects = &*verbs.objects;
    let now = objects.request_time().now.as_second();
    let mut keys = authority.keys.load();
    if let Some(audiences) = own_audiences(&keys.audiences, requested_audiences) {
        let static_user =
            authority.static_authenticators.iter().find_map(|f| f.authenticate_token(token).ok().flatten());
        if let Some(user) = static_user {
            return Ok(new_authenticated_token(UserInfo::clone(&user), audiences));
        }
    }
    let mut errors = vec![INVALID_TOKEN.to_owned()];
    let mut verified = keys.verify(token, requested_audiences, now);
    if matches!(verified, Err(TokenRefusal::NoKey)) && authority.signer.refresh_keys().await {
        keys = authority.keys.load();
        verified = keys.verify(token, requested_audiences, now);
    }
    match verified {
        Ok(Some(verified_token)) => {
            let user = match verified_token.is_legacy() {
                true => legacy_token::authenticate(verbs, authority, token, &verified_token.claims).await,
                false => bound_token::authenticate(objects, &verified_token.claims, now).await,
            };
            match user {
                Ok(user) => return Ok(new_authenticated_token(user, verified_token.audiences)),
                Err(reason) => errors.push(reason.to_string()),
            }
        }
        Ok(None) => {}
        Err(reason) => errors.push(reason.to_string()),
    }
    if let (true, Some(audiences)) =
        (authority.bootstrap_tokens, own_audiences(&keys.audiences, requested_audiences))
        && let Some(user) = bootstrap_token::authenticate(objects, token, now).await
    {
        return Ok(new_authenticated_token(user, audiences));
    }
    for remote in &authority.remote_authenticators {
        match remote.authenticate(token, requested_audiences).await {
            Ok(Some(authenticated_token)) => {
                return Ok(new_authenticated_token(authenticated_token.user, authenticated_token.audiences));
            }
            Ok(None) => {}
            Err(reason) => errors.push(reason),
        }
    }
    Err(aggregate(&errors))
}

fn new_authenticated_token(user: UserInfo, audiences: Vec<String>) -> AuthenticatedToken {
    AuthenticatedToken { user: user.with_authenticated_group(), audiences }
}

/// Reviewer of tokens for callers in the same process.
pub struct TokenReviewer {
    registry: Registry,
    authority: Arc<TokenAuthority>,
}

impl TokenReviewer {
    /// Reviewer with this token authority; the registry contains the objects of tokens.
    #[must_use]
    pub fn new(registry: Registry, authority: Arc<TokenAuthority>) -> Self {
        Self { registry, authority }
    }
}

impl TokenReviewBackend for TokenReviewer {
    fn review<'a>(&'a self, token: &'a str) -> TokenReviewFuture<'a> {
        Box::pin(async move {
            let reviewed = authenticate(self.registry.verbs(), &self.authority, token, &[]).await;
            Ok(reviewed.map(|reviewed| reviewed.user))
        })
    }
}
