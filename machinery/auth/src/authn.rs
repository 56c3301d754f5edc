//! Authentication: the ordered chain of authenticators over the credentials of one request.
//!
//! Upstream rules: generic API server 11.1. A failed credential does not end authentication: any later valid one identifies
//! the caller. The result is 401 if credentials failed and none was valid, and anonymous if there were no credentials. Does not
//! depend on HTTP.

use std::net::IpAddr;
use std::sync::Arc;

use portico_machinery::UserInfo;
use rustls_pki_types::UnixTime;

use crate::headers::HeaderValues;
use method::complete_user;
use reviews::CachedReview;

mod anonymous;
mod bearer;
mod chain;
mod error;
mod method;
mod request_header;
mod reviews;
mod service_account;
mod token_file;
mod token_review;
pub mod token_webhook;
mod websocket;
mod x509;

pub use anonymous::AnonymousAccess;
pub use bearer::EXTRA_SPACE_WARNING;
pub use chain::{AuthorityError, PeerChain, TrustedAuthority};
pub use error::AuthnError;
pub use method::{AuthnMethod, RESERVED_GROUP_PREFIX};
pub use request_header::RequestHeaderConfig;
pub use reviews::{
    MAX_UNKNOWN_REVIEWS, MAX_UNKNOWN_REVIEWS_PER_SECOND, ReviewError, TokenCacheMetrics, TokenReviewBackend,
    TokenReviewCache, TokenReviewFuture, TokenTrust, TooManyReviews, parse_bootstrap_token,
};
pub use service_account::{TokenKeys, TokenRefusal, VerifiedToken};
pub use token_file::{TokenFile, TokenFileError};
pub use token_review::{ReviewedUser, TokenReviewStatus};
pub use websocket::without_token;

/// Group in the certificates of facades. Only the internal CA can assign it to a caller.
pub const FACADES_GROUP: &str = "system:portico:facades";

/// Credentials of one request.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// The raw `Authorization` value (the first, if there are several).
    pub authorization: Option<&'a [u8]>,
    /// All values of `Sec-WebSocket-Protocol` joined by commas; only for a WebSocket upgrade.
    pub websocket_protocols: Option<&'a [u8]>,
    /// Certificates that the peer presented on this connection, and whose key it possesses.
    pub peer: Option<&'a PeerChain>,
    /// Header fields, used only if the peer is a front proxy.
    pub headers: &'a dyn HeaderValues,
    /// Requested path, if it matters: anonymous access may depend on it.
    pub path: Option<&'a str>,
}

/// Authenticator of bearer tokens that works in memory.
pub trait TokenAuthenticator: Send + Sync {
    /// Returns the user of the token, or `None` if the token belongs to another authenticator.
    ///
    /// # Errors
    /// Returns an error if the token belongs to this authenticator and is invalid (expired, revoked).
    fn authenticate_token(&self, token: &str) -> Result<Option<Arc<UserInfo>>, AuthnError>;
}

/// Outcome of authentication. Users are shared: the user of a certificate or a token file is created once, not
/// for each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthnOutcome {
    /// The caller is this user, with the group `system:authenticated`.
    Authenticated(Arc<UserInfo>, AuthnMethod),
    /// The request has no credentials, and anonymous access is allowed.
    Anonymous(Arc<UserInfo>),
    /// The response is 401.
    Unauthorized(Unauthorized),
    /// The only possible credential is this token, which [`AuthenticatorChain::review_token`] can review. Servers without a
    /// reviewer respond with 401.
    NeedsReview(String),
}

/// Result of a valid credential.
enum CredentialResult {
    User(Arc<UserInfo>, AuthnMethod),
    NeedsReview(String),
}

/// Details of a 401 response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unauthorized {
    /// Methods of the presented credentials, in upstream's terms (`basic`, `bearer`, `x509`).
    pub attempted_methods: Vec<&'static str>,
    /// Errors of the credentials.
    pub errors: Vec<AuthnError>,
}

impl Unauthorized {
    /// Upstream's audit message.
    #[must_use]
    pub fn audit_message(&self) -> String {
        if self.attempted_methods.is_empty() {
            return "Authentication failed, no credentials provided".to_owned();
        }
        format!("Authentication failed, attempted: {}", self.attempted_methods.join(", "))
    }
}

/// Result of authentication with a warning for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authentication {
    /// Outcome of authentication.
    pub outcome: AuthnOutcome,
    /// Text of a `Warning` header.
    pub warning: Option<&'static str>,
}

impl Authentication {
    /// Returns the user with whom the request continues.
    ///
    /// # Errors
    /// [`Unauthorized`]: the response is 401.
    pub fn user(self) -> Result<Arc<UserInfo>, Unauthorized> {
        match self.outcome {
            AuthnOutcome::Authenticated(user, _) | AuthnOutcome::Anonymous(user) => Ok(user),
            AuthnOutcome::Unauthorized(refusal) => Err(refusal),
            AuthnOutcome::NeedsReview(_) => {
                Err(Unauthorized { attempted_methods: vec!["bearer"], errors: Vec::new() })
            }
        }
    }
}

/// Configured authenticators. Immutable: a reload builds and swaps in a new chain.
#[derive(Clone, Default)]
pub struct AuthenticatorChain {
    request_header: Option<RequestHeaderConfig>,
    internal: Option<TrustedAuthority>,
    client: Option<TrustedAuthority>,
    signing: Option<TrustedAuthority>,
    tokens: Vec<Arc<dyn TokenAuthenticator>>,
    reviews: Option<Arc<TokenReviewCache>>,
    trust: Arc<TokenTrust>,
    anonymous: AnonymousAccess,
    /// Setting shared by all servers, which overrides the local setting.
    shared_anonymous: Option<AnonymousAccess>,
}

impl AuthenticatorChain {
    /// Trusts the front proxies of this configuration.
    #[must_use]
    pub fn with_request_header(mut self, proxy: RequestHeaderConfig) -> Self {
        self.request_header = Some(proxy);
        self
    }

    /// Trusts certificates of Portico's internal CA.
    #[must_use]
    pub fn with_internal_authority(mut self, authority: TrustedAuthority) -> Self {
        self.internal = Some(authority);
        self
    }

    /// Trusts certificates of `--client-ca-file`.
    #[must_use]
    pub fn with_client_authority(mut self, authority: TrustedAuthority) -> Self {
        self.client = Some(authority);
        self
    }

    /// Trusts client certificates of the CA that signs certificate requests, if any. They name users in the same way as those of
    /// `--client-ca-file`.
    #[must_use]
    pub fn with_signing_authority(mut self, authority: Option<TrustedAuthority>) -> Self {
        self.signing = authority;
        self
    }

    /// Adds an authenticator of bearer tokens, which is called after those added before.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Arc<dyn TokenAuthenticator>) -> Self {
        self.tokens.push(tokens);
        self
    }

    /// Enables reviews of tokens, after all other authenticators. Has an effect once [`TokenTrust`] is set.
    #[must_use]
    pub fn with_reviews(mut self, reviews: Arc<TokenReviewCache>) -> Self {
        self.reviews = Some(reviews);
        self
    }

    /// Sets the tokens to review; by default, none are reviewed.
    #[must_use]
    pub fn with_token_trust(mut self, trust: Arc<TokenTrust>) -> Self {
        self.trust = trust;
        self
    }

    /// Allows or denies callers without credentials, as `system:anonymous`; denied by default.
    #[must_use]
    pub fn with_anonymous(mut self, anonymous: bool) -> Self {
        self.anonymous = anonymous.into();
        self
    }

    /// Overrides the local setting of anonymous access; `None` uses the local setting.
    #[must_use]
    pub fn with_shared_anonymous(mut self, anonymous: Option<AnonymousAccess>) -> Self {
        self.shared_anonymous = anonymous;
        self
    }

    /// True if inner handlers and backends must not receive this header, because it can carry an identity.
    #[must_use]
    pub fn consumes_header(&self, name: &str) -> bool {
        name.eq_ignore_ascii_case("authorization")
            || request_header::is_standard(name)
            || self.request_header.as_ref().is_some_and(|proxy| proxy.uses_header(name))
    }

    /// Authenticates the caller at the current time.
    #[must_use]
    pub fn authenticate(&self, credentials: &Credentials<'_>) -> Authentication {
        self.authenticate_at(credentials, UnixTime::now())
    }

    /// Authenticates the caller at the time `now`, to which the dates of certificates are compared.
    #[must_use]
    pub fn authenticate_at(&self, credentials: &Credentials<'_>, now: UnixTime) -> Authentication {
        let bearer = bearer::parse(credentials.authorization);
        let mut errors = Vec::new();
        let credential = match self.certificate_user(credentials, now, &mut errors) {
            Ok(Some((user, method))) => Some(CredentialResult::User(user, method)),
            Ok(None) => self.bearer_user(bearer.token, credentials.websocket_protocols, now, &mut errors),
            Err(refusal) => {
                errors.push(refusal);
                None
            }
        };
        let outcome = match credential {
            Some(CredentialResult::User(user, method)) => {
                AuthnOutcome::Authenticated(complete_user(user, method), method)
            }
            Some(CredentialResult::NeedsReview(token)) => AuthnOutcome::NeedsReview(token),
            None if errors.is_empty() && self.admits_anonymous(credentials.path) => {
                AuthnOutcome::Anonymous(Arc::new(UserInfo::anonymous()))
            }
            None => AuthnOutcome::Unauthorized(Unauthorized {
                attempted_methods: attempted_methods(credentials),
                errors,
            }),
        };
        Authentication { outcome, warning: bearer.warning }
    }

    fn admits_anonymous(&self, path: Option<&str>) -> bool {
        self.shared_anonymous.as_ref().unwrap_or(&self.anonymous).admits(path)
    }

    /// Returns the user of the peer's certificate, or the one that a front proxy names.
    ///
    /// # Errors
    /// [`AuthnError::Header`]: the request is refused even if it has other credentials; it would run as the user of the proxy.
    fn certificate_user(
        &self,
        credentials: &Credentials<'_>,
        now: UnixTime,
        errors: &mut Vec<AuthnError>,
    ) -> Result<Option<(Arc<UserInfo>, AuthnMethod)>, AuthnError> {
        let Some(peer) = credentials.peer else { return Ok(None) };
        if let Some(proxy) = &self.request_header {
            match proxy.authenticate(peer, credentials.headers, now) {
                Ok(Some(user)) => return Ok(Some((Arc::new(user), AuthnMethod::RequestHeader))),
                Ok(None) => {}
                Err(refusal @ AuthnError::Header(_)) => return Err(refusal),
                Err(e) => errors.push(e),
            }
        }
        let authorities = || {
            let internal = self.internal.iter().map(|a| (a, AuthnMethod::InternalCertificate));
            let clients = self.client.iter().chain(&self.signing);
            internal.chain(clients.map(|a| (a, AuthnMethod::ClientCertificate)))
        };
        let user = |(authority, method): (&TrustedAuthority, AuthnMethod)| {
            authority.verify(peer, now).and_then(|()| peer.user(method)).map(|user| (user, method))
        };
        for candidate in authorities() {
            match user(candidate) {
                Ok((Some(user), method)) => return Ok(Some((user, method))),
                // A trusted certificate without a user name is ignored and is not an error.
                Ok((None, _)) => return Ok(None),
                Err(_) => {}
            }
        }
        // The errors are collected in a second, cached pass: most callers whom one authority refuses are accepted by another.
        errors.extend(authorities().filter_map(|candidate| user(candidate).err()));
        Ok(None)
    }

    /// Reviews a token that [`AuthnOutcome::NeedsReview`] named, so that the next authentication of the same credentials finds
    /// the result. `client` is the address of the client.
    ///
    /// # Errors
    /// [`TooManyReviews`]: the token was not reviewed.
    pub async fn review_token(
        &self,
        token: &str,
        client: IpAddr,
        reviewer: &dyn TokenReviewBackend,
    ) -> Result<(), TooManyReviews> {
        match &self.reviews {
            Some(reviews) => reviews.review(&self.trust, token, client, reviewer).await,
            None => Ok(()),
        }
    }

    fn bearer_user(
        &self,
        bearer: Option<&[u8]>,
        protocols: Option<&[u8]>,
        now: UnixTime,
        errors: &mut Vec<AuthnError>,
    ) -> Option<CredentialResult> {
        if let Some(token) = bearer {
            let token = std::str::from_utf8(token).map_err(|_| AuthnError::InvalidToken);
            match token.and_then(|token| self.token_user(token, AuthnMethod::BearerToken, now)) {
                Ok(found) => return Some(found),
                Err(e) => errors.push(e),
            }
        }
        let token = match websocket::bearer_token(protocols?) {
            Ok(token) => token?,
            Err(e) => {
                errors.push(e);
                return None;
            }
        };
        self.token_user(&token, AuthnMethod::WebSocketToken, now).map_err(|e| errors.push(e)).ok()
    }

    fn token_user(
        &self,
        token: &str,
        method: AuthnMethod,
        now: UnixTime,
    ) -> Result<CredentialResult, AuthnError> {
        let mut last = AuthnError::InvalidToken;
        for tokens in &self.tokens {
            match tokens.authenticate_token(token) {
                Ok(Some(user)) => return Ok(CredentialResult::User(user, method)),
                Ok(None) => {}
                Err(e) => last = e,
            }
        }
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        match self
            .reviews
            .as_ref()
            .map_or(CachedReview::NotReviewable, |reviews| reviews.lookup(&self.trust, token, now))
        {
            CachedReview::User(user) => Ok(CredentialResult::User(user, method)),
            CachedReview::NeedsReview => Ok(CredentialResult::NeedsReview(token.to_owned())),
            CachedReview::Invalid(error) => Err(error),
            CachedReview::NotReviewable => Err(last),
        }
    }
}

fn attempted_methods(credentials: &Credentials<'_>) -> Vec<&'static str> {
    let scheme = credentials.authorization.unwrap_or_default().trim_ascii().to_ascii_lowercase();
    let mut methods = Vec::new();
    if scheme.starts_with(b"basic ") {
        methods.push("basic");
    }
    if scheme.starts_with(b"bearer") {
        methods.push("bearer");
    }
    if credentials.peer.is_some() {
        methods.push("x509");
    }
    methods
}

#[cfg(test)]
mod tests;
