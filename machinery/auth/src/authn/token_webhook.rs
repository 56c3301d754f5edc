//! Token webhooks: encoding and decoding of TokenReviews, and a cache of recent answers.
//!
//! Upstream rules: plugin/pkg/authenticator/token/webhook, pkg/authentication/token/cache. Performs no I/O;
//! answers are untrusted.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use portico_kit::expiring_cache::ExpiringCache;
use portico_machinery::UserInfo;
use serde::{Deserialize, Serialize};

use super::token_review::TokenReviewStatus;
use crate::authz::MAX_CACHED_ANSWERS;
use crate::authz::review::ReviewVersion;

const KIND: &str = "TokenReview";
const GROUP: &str = "authentication.k8s.io";

/// Result of a successful token authentication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthenticatedToken {
    /// User, as named by the webhook.
    pub user: UserInfo,
    /// Requested audiences for which the token is valid.
    pub audiences: Vec<String>,
}

/// Future result of a token authentication: `None` if the token is not known.
pub type AuthenticatedTokenFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Option<AuthenticatedToken>, String>> + Send + 'a>>;

/// Returns the audiences of a token that names none: those of this API that were requested. `None` if none of them was requested.
#[must_use]
pub fn own_audiences(api_audiences: &[String], requested: &[String]) -> Option<Vec<String>> {
    let shared: Vec<_> =
        api_audiences.iter().filter(|a| requested.is_empty() || requested.contains(a)).cloned().collect();
    (!shared.is_empty() || api_audiences.is_empty()).then_some(shared)
}

/// Authenticator of tokens that calls another server.
pub trait RemoteTokenAuthenticator: Send + Sync {
    /// Authenticates a token for these audiences; an empty list means those of this API.
    fn authenticate<'a>(&'a self, token: &'a str, audiences: &'a [String]) -> AuthenticatedTokenFuture<'a>;
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    kind: &'static str,
    api_version: String,
    metadata: Empty,
    spec: Spec<'a>,
    status: EmptyStatus,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct Spec<'a> {
    token: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    audiences: &'a [String],
}

#[derive(Serialize)]
struct EmptyStatus {
    user: Empty,
}

/// Encodes a TokenReview in a version.
#[must_use]
pub fn encode_review(version: ReviewVersion, token: &str, audiences: &[String]) -> Vec<u8> {
    let review = Review {
        kind: KIND,
        api_version: format!("{GROUP}/{}", version.name()),
        metadata: Empty {},
        spec: Spec { token, audiences },
        status: EmptyStatus { user: Empty {} },
    };
    // Encoding strings cannot fail.
    serde_json::to_vec(&review).unwrap_or_default()
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ReviewResponse {
    kind: String,
    api_version: String,
    status: TokenReviewStatus,
}

/// Parses a review for the audiences `requested`; tokens that name no audiences are for `own`.
///
/// # Errors
/// Returns the webhook's error about the token, or the reason why the response is not a valid review.
pub fn parse_response(
    version: ReviewVersion,
    body: &[u8],
    requested: &[String],
    api_audiences: &[String],
) -> Result<Option<AuthenticatedToken>, String> {
    let response: ReviewResponse =
        portico_gostd::json::from_slice(body).map_err(|error| portico_gostd::json::error_text(&error))?;
    let expected = format!("{GROUP}/{}", version.name());
    let matches = |actual: &str, required: &str| actual.is_empty() || actual == required;
    if !matches(&response.kind, KIND) || !matches(&response.api_version, &expected) {
        let (kind, version) = (response.kind, response.api_version);
        return Err(format!("no kind {kind:?} is registered for version {version:?}"));
    }
    let TokenReviewStatus { authenticated, user, audiences, error } = response.status;
    let got = if audiences.is_empty() { api_audiences } else { &audiences };
    let audiences: Vec<String> = requested.iter().filter(|one| got.contains(one)).cloned().collect();
    if !requested.is_empty() && audiences.is_empty() {
        return Ok(None);
    }
    if !authenticated {
        return if error.is_empty() { Ok(None) } else { Err(error) };
    }
    Ok(Some(AuthenticatedToken { user: user.into(), audiences }))
}

/// Cache of recent answers. Tokens are stored as keyed hashes.
pub struct TokenAnswerCache {
    secret: hmac::Key,
    responses: ExpiringCache<Option<AuthenticatedToken>>,
    ttl: Duration,
}

impl TokenAnswerCache {
    /// Returns a cache whose answers are valid for this time.
    ///
    /// # Errors
    /// Returns an error if no random key is available. The key keeps the hashes of tokens unpredictable.
    pub fn new(ttl: Duration) -> Result<Self, Unspecified> {
        let secret = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())?;
        Ok(Self { secret, responses: ExpiringCache::new(MAX_CACHED_ANSWERS), ttl })
    }

    /// Returns the cached answer for a token and these audiences; the inner `None` means that the token is not known.
    #[must_use]
    pub fn get(&self, token: &str, audiences: &[String], now: Instant) -> Option<Option<AuthenticatedToken>> {
        self.responses.get(&self.key(token, audiences), now)
    }

    /// Stores an answer.
    pub fn insert(
        &self,
        token: &str,
        audiences: &[String],
        answer: Option<AuthenticatedToken>,
        now: Instant,
    ) {
        self.responses.insert(&self.key(token, audiences), answer, now, self.ttl);
    }

    fn key(&self, token: &str, audiences: &[String]) -> String {
        let mut context = hmac::Context::with_key(&self.secret);
        // Each text is preceded by its length, so that "xy", "z" and "x", "yz" have different keys.
        for text in std::iter::once(token).chain(audiences.iter().map(String::as_str)) {
            context.update(&text.len().to_be_bytes());
            context.update(text.as_bytes());
        }
        STANDARD_NO_PAD.encode(context.sign())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_review_names_the_token_and_the_audiences() {
        let text = String::from_utf8(encode_review(ReviewVersion::V1, "t", &texts(&["a"]))).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{},"spec":{"token":"t","audiences":["a"]},"status":{"user":{}}}"#
        );
    }

    #[test]
    fn a_response_authenticates_for_the_requested_audiences() {
        let own = texts(&["api"]);
        let read = |status: &str, requested: &[&str]| {
            parse_response(
                ReviewVersion::V1,
                format!(r#"{{"status":{status}}}"#).as_bytes(),
                &texts(requested),
                &own,
            )
        };
        let yes = r#"{"authenticated":true,"user":{"username":"u","groups":["g"],"extra":{"k":["v"]}}"#;
        let accepted = read(&format!("{yes}}}"), &["api"]).unwrap().unwrap();
        assert_eq!((accepted.user.name.as_str(), accepted.audiences), ("u", texts(&["api"])));
        assert_eq!(
            read(&format!("{yes}}}"), &["other"]),
            Ok(None),
            "a token without audiences is for this API"
        );
        let other = read(&format!(r#"{yes},"audiences":["other","x"]}}"#), &["other"]).unwrap().unwrap();
        assert_eq!(other.audiences, texts(&["other"]));
        assert_eq!(read(&format!(r#"{yes},"audiences":["x"]}}"#), &["api"]), Ok(None));
        assert!(read(&format!(r#"{yes},"audiences":["x"]}}"#), &[]).unwrap().is_some());
        assert_eq!(read("{}", &[]), Ok(None));
        assert_eq!(read(r#"{"error":"expired"}"#, &[]), Err("expired".to_owned()));
        let older = br#"{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1beta1"}"#;
        assert!(
            parse_response(ReviewVersion::V1, older, &[], &own)
                .unwrap_err()
                .contains("is registered for version")
        );
        assert!(parse_response(ReviewVersion::V1, b"<html>", &[], &own).is_err());
    }

    #[test]
    fn answers_are_cached_by_token_and_audiences_for_their_ttl() {
        let life = Duration::from_secs(5);
        let (answers, now) = (TokenAnswerCache::new(life).unwrap(), Instant::now());
        answers.insert("ab", &texts(&["c"]), Some(AuthenticatedToken::default()), now);
        answers.insert("bad", &[], None, now);
        assert_eq!(answers.get("ab", &texts(&["c"]), now), Some(Some(AuthenticatedToken::default())));
        assert_eq!(answers.get("bad", &[], now), Some(None));
        assert_eq!(answers.get("a", &texts(&["bc"]), now), None);
        assert_eq!(answers.get("ab", &[], now), None);
        assert_eq!(answers.get("bad", &[], now + life), None);
    }
}
