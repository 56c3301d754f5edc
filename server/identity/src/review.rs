//! Authentication of tokens by all authenticators, in upstream's order.

use std::sync::Arc;

use portico_auth::authn::remote::own_audiences;
use portico_auth::authn::{Refused, Reviewer, Reviewing};
use portico_machinery::{UserInfo, aggregate};

use crate::issuer::Identity;
use crate::{bootstrap, bound, legacy};
use portico_registry::{Registry, Verbs};

const UNKNOWN: &str = "invalid bearer token";

/// Valid token.
pub struct Reviewed {
    /// User of the token, including the group `system:authenticated`.
    pub user: UserInfo,
    /// Requested audiences for which the token is valid.
    pub audiences: Vec<String>,
}

/// Authenticates a token for these audiences, or for those of this API if there are none. Returns upstream's message if the token
/// is invalid.
pub(crate) async fn review(
    verbs: &Verbs,
    identity: &Identity,
    token: &str,
    asked: &[String],
) -> Result<Reviewed, String> {
    let objects = &*verbs.objects;
    let now = objects.moment().now.as_second();
    let mut keys = identity.keys.load();
    if let Some(audiences) = own_audiences(&keys.audiences, asked) {
        let fixed = identity.fixed.iter().find_map(|f| f.authenticate_token(token).ok().flatten());
        if let Some(user) = fixed {
            return Ok(reviewed(UserInfo::clone(&user), audiences));
        }
    }
    let mut errors = vec![UNKNOWN.to_owned()];
    let mut read = keys.read(token, asked, now);
    if matches!(read, Err(Refused::NoKey)) && identity.signer.newer_keys().await {
        keys = identity.keys.load();
        read = keys.read(token, asked, now);
    }
    match read {
        Ok(Some(signed)) => {
            let user = match signed.is_legacy() {
                true => legacy::user(verbs, identity, token, &signed.claims).await,
                false => bound::user(objects, &signed.claims, now).await,
            };
            match user {
                Ok(user) => return Ok(reviewed(user, signed.audiences)),
                Err(why) => errors.push(why.to_string()),
            }
        }
        Ok(None) => {}
        Err(why) => errors.push(why.to_string()),
    }
    if let (true, Some(audiences)) = (identity.bootstrap_tokens, own_audiences(&keys.audiences, asked))
        && let Some(user) = bootstrap::user(objects, token, now).await
    {
        return Ok(reviewed(user, audiences));
    }
    for remote in &identity.remote {
        match remote.authenticate(token, asked).await {
            Ok(Some(known)) => return Ok(reviewed(known.user, known.audiences)),
            Ok(None) => {}
            Err(why) => errors.push(why),
        }
    }
    Err(aggregate(&errors))
}

fn reviewed(user: UserInfo, audiences: Vec<String>) -> Reviewed {
    Reviewed { user: user.authenticated(), audiences }
}

/// Reviewer of tokens for callers in the same process.
pub struct TokenReviewer {
    registry: Registry,
    identity: Arc<Identity>,
}

impl TokenReviewer {
    /// Reviewer with this token authority; the registry contains the objects of tokens.
    #[must_use]
    pub fn new(registry: Registry, identity: Arc<Identity>) -> Self {
        Self { registry, identity }
    }
}

impl Reviewer for TokenReviewer {
    fn review<'a>(&'a self, token: &'a str) -> Reviewing<'a> {
        Box::pin(async move {
            let reviewed = review(self.registry.verbs(), &self.identity, token, &[]).await;
            Ok(reviewed.map(|reviewed| reviewed.user))
        })
    }
}
