//! Who is calling: the ordered chain of authenticators over one request's credentials.
//!
//! Upstream rules: generic API server 11.1. One failed credential does not end the attempt: any later good one names
//! the caller; a bad one and no good one is 401; nothing that was tried is anonymous. Must not know HTTP.

use std::net::IpAddr;
use std::sync::Arc;

use portico_machinery::UserInfo;
use rustls_pki_types::UnixTime;

use crate::headers::HeaderValues;
use method::completed;
use reviews::Known;

mod anonymous;
mod bearer;
mod chain;
mod error;
mod method;
pub mod remote;
mod request_header;
mod reviews;
mod service_account;
mod token_file;
mod token_review;
mod websocket;
mod x509;

pub use anonymous::Anonymous;
pub use bearer::EXTRA_SPACE_WARNING;
pub use chain::{Authority, AuthorityError, PeerChain};
pub use error::AuthnError;
pub use method::{Method, RESERVED_GROUP_PREFIX};
pub use request_header::RequestHeader;
pub use reviews::{
    MAX_UNKNOWN_REVIEWS, MAX_UNKNOWN_REVIEWS_PER_SECOND, NoReview, Reviewer, Reviewing, Reviews,
    TokenCacheMetrics, TokenTrust, TooManyReviews, bootstrap_token,
};
pub use service_account::{Refused, Signed, TokenKeys};
pub use token_file::{TokenFile, TokenFileError};
pub use token_review::{ReviewedUser, TokenReviewStatus};
pub use websocket::without_token;

/// The group of facades' certificates. Only the internal CA can put a caller into it.
pub const FACADES: &str = "system:portico:facades";

/// What one request brought to prove who sends it.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// The raw `Authorization` value (the first, if there are several).
    pub authorization: Option<&'a [u8]>,
    /// All values of `Sec-WebSocket-Protocol` joined by commas; only for a WebSocket upgrade.
    pub websocket_protocols: Option<&'a [u8]>,
    /// The certificates that the peer presented on this connection and holds the key of.
    pub peer: Option<&'a PeerChain>,
    /// The header fields, read only when the peer is a front proxy.
    pub headers: &'a dyn HeaderValues,
    /// The path that is asked for, where that makes a difference: callers without credentials may be let in by it.
    pub path: Option<&'a str>,
}

/// Knows the user of a bearer token, from memory.
pub trait TokenAuthenticator: Send + Sync {
    /// The token's user; nothing when the token is not this authenticator's.
    ///
    /// # Errors
    /// When the token is this authenticator's and is bad (expired, revoked).
    fn authenticate_token(&self, token: &str) -> Result<Option<Arc<UserInfo>>, AuthnError>;
}

/// Who the caller is. Users are shared: whoever is known by a certificate or a token file is made once, not for each
/// request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This user, `system:authenticated` included.
    Authenticated(Arc<UserInfo>, Method),
    /// Nothing was presented and anonymous callers are let in.
    Anonymous(Arc<UserInfo>),
    /// 401.
    Unauthorized(Unauthorized),
    /// Nothing counts so far but this token, whose user [`AuthenticatorChain::reviewed`] finds out. Who has nobody to ask answers 401.
    Ask(String),
}

/// Where a credential leads.
enum Found {
    User(Arc<UserInfo>, Method),
    Ask(String),
}

/// A 401 and what led to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unauthorized {
    /// What was presented, in upstream's words (`basic`, `bearer`, `x509`).
    pub attempted: Vec<&'static str>,
    /// Why each credential did not count.
    pub errors: Vec<AuthnError>,
}

impl Unauthorized {
    /// Upstream's audit message.
    #[must_use]
    pub fn audit_message(&self) -> String {
        if self.attempted.is_empty() {
            return "Authentication failed, no credentials provided".to_owned();
        }
        format!("Authentication failed, attempted: {}", self.attempted.join(", "))
    }
}

/// The outcome and what the caller should be warned of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authentication {
    /// Who it is.
    pub outcome: Outcome,
    /// Text of a `Warning` header.
    pub warning: Option<&'static str>,
}

impl Authentication {
    /// The user to go on with.
    ///
    /// # Errors
    /// [`Unauthorized`]: answer 401.
    pub fn user(self) -> Result<Arc<UserInfo>, Unauthorized> {
        match self.outcome {
            Outcome::Authenticated(user, _) | Outcome::Anonymous(user) => Ok(user),
            Outcome::Unauthorized(refusal) => Err(refusal),
            Outcome::Ask(_) => Err(Unauthorized { attempted: vec!["bearer"], errors: Vec::new() }),
        }
    }
}

/// The configured authenticators. Immutable: a reload builds another and swaps it in.
#[derive(Clone, Default)]
pub struct AuthenticatorChain {
    request_header: Option<RequestHeader>,
    internal: Option<Authority>,
    client: Option<Authority>,
    signing: Option<Authority>,
    tokens: Vec<Arc<dyn TokenAuthenticator>>,
    reviews: Option<Arc<Reviews>>,
    trust: Arc<TokenTrust>,
    anonymous: Anonymous,
    /// The setting for all servers together, which replaces the own one.
    shared_anonymous: Option<Anonymous>,
}

impl AuthenticatorChain {
    /// Trusts front proxies that this describes.
    #[must_use]
    pub fn with_request_header(mut self, proxy: RequestHeader) -> Self {
        self.request_header = Some(proxy);
        self
    }

    /// Trusts certificates of Portico's internal CA.
    #[must_use]
    pub fn with_internal_authority(mut self, authority: Authority) -> Self {
        self.internal = Some(authority);
        self
    }

    /// Trusts certificates of `--client-ca-file`.
    #[must_use]
    pub fn with_client_authority(mut self, authority: Authority) -> Self {
        self.client = Some(authority);
        self
    }

    /// Trusts client certificates of the CA that signs certificate requests, or of none: they name users as those of
    /// `--client-ca-file` do.
    #[must_use]
    pub fn with_signing_authority(mut self, authority: Option<Authority>) -> Self {
        self.signing = authority;
        self
    }

    /// Asks this authenticator about bearer tokens, after those added before.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Arc<dyn TokenAuthenticator>) -> Self {
        self.tokens.push(tokens);
        self
    }

    /// Has tokens that stand for objects reviewed, after all others, once there is somebody to trust.
    #[must_use]
    pub fn with_reviews(mut self, reviews: Arc<Reviews>) -> Self {
        self.reviews = Some(reviews);
        self
    }

    /// Says whose tokens are reviewed: nobody's otherwise.
    #[must_use]
    pub fn with_trust(mut self, trust: Arc<TokenTrust>) -> Self {
        self.trust = trust;
        self
    }

    /// Lets callers without credentials in as `system:anonymous`; nobody otherwise.
    #[must_use]
    pub fn with_anonymous(mut self, anonymous: bool) -> Self {
        self.anonymous = anonymous.into();
        self
    }

    /// Sets who is let in without credentials in the place of the own setting; `None` keeps that.
    #[must_use]
    pub fn with_shared_anonymous(mut self, anonymous: Option<Anonymous>) -> Self {
        self.shared_anonymous = anonymous;
        self
    }

    /// Whether inner handlers (and backends) must not see this header: it carried or could carry an identity.
    #[must_use]
    pub fn consumes_header(&self, name: &str) -> bool {
        name.eq_ignore_ascii_case("authorization")
            || request_header::is_standard(name)
            || self.request_header.as_ref().is_some_and(|proxy| proxy.reads(name))
    }

    /// Names the caller, now.
    #[must_use]
    pub fn authenticate(&self, credentials: &Credentials<'_>) -> Authentication {
        self.authenticate_at(credentials, UnixTime::now())
    }

    /// Names the caller as of `now`, which certificates' dates are compared with.
    #[must_use]
    pub fn authenticate_at(&self, credentials: &Credentials<'_>, now: UnixTime) -> Authentication {
        let bearer = bearer::parse(credentials.authorization);
        let mut errors = Vec::new();
        let found = match self.by_certificate(credentials, now, &mut errors) {
            Ok(Some((user, method))) => Some(Found::User(user, method)),
            Ok(None) => self.by_token(bearer.token, credentials.websocket_protocols, now, &mut errors),
            Err(refusal) => {
                errors.push(refusal);
                None
            }
        };
        let outcome = match found {
            Some(Found::User(user, method)) => Outcome::Authenticated(completed(user, method), method),
            Some(Found::Ask(token)) => Outcome::Ask(token),
            None if errors.is_empty() && self.admits_anonymous(credentials.path) => {
                Outcome::Anonymous(Arc::new(UserInfo::anonymous()))
            }
            None => Outcome::Unauthorized(Unauthorized { attempted: attempted(credentials), errors }),
        };
        Authentication { outcome, warning: bearer.warning }
    }

    fn admits_anonymous(&self, path: Option<&str>) -> bool {
        self.shared_anonymous.as_ref().unwrap_or(&self.anonymous).admits(path)
    }

    /// The user of the peer's certificate, or the one that a front proxy names.
    ///
    /// # Errors
    /// [`AuthnError::Header`]: the request is refused even if it has other credentials; it would run as the proxy's own user.
    fn by_certificate(
        &self,
        credentials: &Credentials<'_>,
        now: UnixTime,
        errors: &mut Vec<AuthnError>,
    ) -> Result<Option<(Arc<UserInfo>, Method)>, AuthnError> {
        let Some(peer) = credentials.peer else { return Ok(None) };
        if let Some(proxy) = &self.request_header {
            match proxy.authenticate(peer, credentials.headers, now) {
                Ok(Some(user)) => return Ok(Some((Arc::new(user), Method::RequestHeader))),
                Ok(None) => {}
                Err(refusal @ AuthnError::Header(_)) => return Err(refusal),
                Err(e) => errors.push(e),
            }
        }
        let authorities = || {
            let internal = self.internal.iter().map(|a| (a, Method::InternalCertificate));
            let clients = self.client.iter().chain(&self.signing);
            internal.chain(clients.map(|a| (a, Method::ClientCertificate)))
        };
        let user = |(authority, method): (&Authority, Method)| {
            authority.verify(peer, now).and_then(|()| peer.user(method)).map(|user| (user, method))
        };
        for candidate in authorities() {
            match user(candidate) {
                Ok((Some(user), method)) => return Ok(Some((user, method))),
                // A trusted certificate that names nobody proves nothing and is no error.
                Ok((None, _)) => return Ok(None),
                Err(_) => {}
            }
        }
        // Asked again, from memory, for the reasons: most callers whom one authority refuses another one knows.
        errors.extend(authorities().filter_map(|candidate| user(candidate).err()));
        Ok(None)
    }

    /// Finds out whose token this is, which this client presents, so that authenticating again knows. The token is one that
    /// was asked for.
    ///
    /// # Errors
    /// [`TooManyReviews`]: it stays unknown for now.
    pub async fn reviewed(
        &self,
        token: &str,
        client: IpAddr,
        reviewer: &dyn Reviewer,
    ) -> Result<(), TooManyReviews> {
        match &self.reviews {
            Some(reviews) => reviews.ask(&self.trust, token, client, reviewer).await,
            None => Ok(()),
        }
    }

    fn by_token(
        &self,
        bearer: Option<&[u8]>,
        protocols: Option<&[u8]>,
        now: UnixTime,
        errors: &mut Vec<AuthnError>,
    ) -> Option<Found> {
        if let Some(token) = bearer {
            let token = std::str::from_utf8(token).map_err(|_| AuthnError::InvalidToken);
            match token.and_then(|token| self.token_user(token, Method::BearerToken, now)) {
                Ok(found) => return Some(found),
                Err(e) => errors.push(e),
            }
        }
        let token = match websocket::token(protocols?) {
            Ok(token) => token?,
            Err(e) => {
                errors.push(e);
                return None;
            }
        };
        self.token_user(&token, Method::WebSocketToken, now).map_err(|e| errors.push(e)).ok()
    }

    fn token_user(&self, token: &str, method: Method, now: UnixTime) -> Result<Found, AuthnError> {
        let mut last = AuthnError::InvalidToken;
        for tokens in &self.tokens {
            match tokens.authenticate_token(token) {
                Ok(Some(user)) => return Ok(Found::User(user, method)),
                Ok(None) => {}
                Err(e) => last = e,
            }
        }
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        match self.reviews.as_ref().map_or(Known::Nothing, |reviews| reviews.look(&self.trust, token, now)) {
            Known::User(user) => Ok(Found::User(user, method)),
            Known::Ask => Ok(Found::Ask(token.to_owned())),
            Known::Bad(error) => Err(error),
            Known::Nothing => Err(last),
        }
    }
}

fn attempted(credentials: &Credentials<'_>) -> Vec<&'static str> {
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
