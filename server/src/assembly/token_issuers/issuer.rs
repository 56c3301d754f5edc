//! Authentication of one issuer's tokens: verifies signatures, resolves distributed claims, and maps claims to a user (upstream's
//! `jwtAuthenticator`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use portico_auth::oidc::{
    JwtAuthenticator, RawClaims, SignedToken, TokenRequirements, VerificationError, untrusted_issuer,
};
use portico_kit::egress::EgressDialer;
use portico_kit::tasks::TaskSet;
use portico_kit::tls::TlsError;
use portico_machinery::UserInfo;

use super::configuration::IssuerConfiguration;
use super::key_feed::KeyFeed;
use super::metrics::IssuerMetrics;
use super::provider::Provider;

/// Maximum number of issuers of distributed claims for the tokens of one issuer.
const MAX_CLAIM_ISSUERS: usize = 16;

/// OpenID Connect issuer.
pub(super) struct Issuer {
    authenticator: JwtAuthenticator,
    provider: Provider,
    pub(super) keys: KeyFeed,
    /// Key feeds of the issuers of distributed claims, by issuer.
    claim_feeds: Mutex<BTreeMap<String, KeyFeed>>,
    tasks: TaskSet,
}

impl Issuer {
    /// Starts to fetch the keys of an issuer, until `tasks` end.
    ///
    /// # Errors
    /// The CA of the issuer cannot be used.
    pub(super) fn start(
        configuration: &IssuerConfiguration,
        egress: Option<EgressDialer>,
        metrics: &IssuerMetrics,
        tasks: &TaskSet,
    ) -> Result<Self, TlsError> {
        let address = &configuration.address;
        let provider = Provider::new(address, egress, tasks)?;
        let keys = KeyFeed::start(
            &address.url,
            address.discovery_url.clone(),
            provider.clone(),
            Some(metrics.for_keys(&address.url)),
            tasks,
        );
        let authenticator = configuration.authenticator.clone();
        Ok(Self { authenticator, provider, keys, claim_feeds: Mutex::default(), tasks: tasks.clone() })
    }

    /// Returns the URL that tokens of the issuer contain.
    pub(super) fn url(&self) -> &str {
        &self.authenticator.issuer
    }

    /// Returns the user of a token that names this issuer.
    ///
    /// # Errors
    /// The reason why the token is rejected.
    pub(super) async fn user(&self, token: &str) -> Result<UserInfo, String> {
        let Some(keys) = self.keys.keys() else {
            return Err("oidc: authenticator not initialized".to_owned());
        };
        let verified = verify(token, &self.keys, keys, &self.authenticator.verification(now())).await;
        let mut claims = verified.map_err(|error| format!("oidc: verify token: {error}"))?;
        self.resolve_distributed_claim(&mut claims)
            .await
            .map_err(|error| format!("oidc: could not expand distributed claims: {error}"))?;
        self.authenticator.user(&claims)
    }

    /// Fetches the groups claim, if another server provides it as a distributed claim (`claimResolver.expand`).
    async fn resolve_distributed_claim(&self, claims: &mut RawClaims) -> Result<(), String> {
        let Some(claim) = self.authenticator.distributed_claim() else { return Ok(()) };
        let Some(source) = claims.source(claim)? else { return Ok(()) };
        let endpoint = &source.endpoint;
        let token = self
            .provider
            .claim(&source)
            .await
            .map_err(|error| format!("while getting distributed claim {claim:?}: {error}"))?;
        let issuer = untrusted_issuer(&token).ok_or_else(|| {
            format!("getting untrusted issuer from endpoint {endpoint} failed for claim {claim:?}: malformed token")
        })?;
        let feed = self
            .feed(&issuer)
            .map_err(|error| format!("verifying untrusted issuer {issuer} failed: {error}"))?;
        let Some(keys) = feed.keys() else {
            return Err(format!(
                "verifying untrusted issuer {issuer} failed: verifier not initialized for issuer: {issuer:?}"
            ));
        };
        let verification = TokenRequirements { issuer: &issuer, ..self.authenticator.verification(now()) };
        let mut claim_token = verify(&token, &feed, keys, &verification)
            .await
            .map_err(|error| format!("verify distributed claim token: {error}"))?;
        if claims.take_claim_from(claim, &mut claim_token) {
            return Ok(());
        }
        Err(format!("jwt returned by distributed claim endpoint {endpoint:?} did not contain claim: {claim}"))
    }

    /// Returns the key feed of an issuer of distributed claims; starts it at the first use.
    fn feed(&self, issuer: &str) -> Result<KeyFeed, String> {
        let mut feeds = self.claim_feeds.lock();
        if let Some(feed) = feeds.get(issuer) {
            return Ok(feed.clone());
        }
        // The issuer of the claim is not verified yet, so a feed without keys is evicted.
        if feeds.len() >= MAX_CLAIM_ISSUERS {
            feeds.retain(|_, feed| feed.keys().is_some());
        }
        if feeds.len() >= MAX_CLAIM_ISSUERS {
            return Err(format!("there are more than {MAX_CLAIM_ISSUERS} issuers of distributed claims"));
        }
        let feed = KeyFeed::start(issuer, None, self.provider.clone(), None, &self.tasks);
        feeds.insert(issuer.to_owned(), feed.clone());
        Ok(feed)
    }
}

/// Verifies a token; fetches newer keys if no current key has signed it.
async fn verify(
    token: &str,
    feed: &KeyFeed,
    keys: Arc<portico_auth::oidc::JsonWebKeys>,
    requirements: &TokenRequirements<'_>,
) -> Result<RawClaims, String> {
    let signed = SignedToken::parse(token)?;
    let result = match signed.verify(&keys, requirements) {
        Ok(claims) => return Ok(claims),
        Err(VerificationError::Refused(reason)) => return Err(reason),
        Err(VerificationError::Signature) => match feed.fetch_newer().await {
            Some(newer) => signed.verify(&newer, requirements),
            None => Err(VerificationError::Signature),
        },
    };
    result.map_err(|error| match (error, feed.failure()) {
        (VerificationError::Refused(reason), _) => reason,
        (VerificationError::Signature, Some(reason)) => {
            format!("failed to verify signature: fetching keys {reason}")
        }
        (VerificationError::Signature, None) => {
            "failed to verify signature: failed to verify id token signature".to_owned()
        }
    })
}

/// Returns the time in seconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}
