//! Reviews of tokens that represent objects: keys and dates are checked here, then a reviewer with access to the objects decides.
//!
//! Results are cached for a few seconds, so that the reviewer is called once per token instead of once per request.
//! Tokens are stored as keyed hashes. Reviews of tokens that any client can invent (bootstrap tokens, which have no signature)
//! are rate limited.

mod metrics;
mod review_limiter;

pub use metrics::TokenCacheMetrics;
pub use review_limiter::{MAX_UNKNOWN_REVIEWS, MAX_UNKNOWN_REVIEWS_PER_SECOND, TooManyReviews};

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use parking_lot::Mutex;
use portico_kit::single_flight::SingleFlight;
use portico_machinery::UserInfo;
use quick_cache::unsync::Cache;

use super::error::AuthnError;
use super::service_account::{TokenKeys, TokenRefusal};
use crate::jwt::{CompactToken, TimeError};
use review_limiter::ReviewLimiter;

/// Time for which a successful token review is cached.
///
/// Limit (Authentication and authorization): the token is reviewed again.
const VALID_TTL: Duration = Duration::from_secs(5);
/// Time for which a failed token review is cached.
///
/// Limit (Authentication and authorization): the token is reviewed again.
const INVALID_TTL: Duration = Duration::from_secs(1);
/// Time for which an authenticated token stays valid while the control service is unavailable.
///
/// Limit (Authentication and authorization): requests with the token get 503.
const STALE_TTL: Duration = Duration::from_secs(600);
/// Time until the next review after the reviewer could not be reached.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Cached successful token reviews.
///
/// Limit (Authentication and authorization): the least recently used one is removed.
const MAX_VALID: usize = 4096;
/// Cached failed token reviews.
///
/// Limit (Authentication and authorization): the least recently used failed one is removed; successful ones stay.
const MAX_INVALID: usize = 4096;

/// Future result of a review: the user, or the reason why the token is invalid.
pub type TokenReviewFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Result<UserInfo, String>, ReviewError>> + Send + 'a>>;

/// Error of a review without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewError {
    /// No reviewer was reached. Earlier results remain valid for longer.
    Unreachable,
    /// The reviewer failed. Earlier results are neither extended nor removed.
    Failed,
}

/// Reviewer with access to the objects that tokens represent.
pub trait TokenReviewBackend: Send + Sync {
    /// Reviews a token for the audiences of this API.
    fn review<'a>(&'a self, token: &'a str) -> TokenReviewFuture<'a>;
}

/// Result of a lookup without a review.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CachedReview {
    /// The token is not of a kind that is reviewed.
    NotReviewable,
    /// The token is valid and belongs to this user.
    User(Arc<UserInfo>),
    /// The token is invalid.
    Invalid(AuthnError),
    /// The token must be reviewed.
    NeedsReview,
}

/// Configuration of the tokens that are reviewed. Immutable: a change of keys creates a new value.
#[derive(Clone, Debug, Default)]
pub struct TokenTrust {
    keys: TokenKeys,
    bootstrap: bool,
    /// True if the reviewer may know tokens that no key here has signed.
    reviews_foreign_tokens: bool,
    /// True if keys change, so that the reviewer may know keys that are unknown here.
    has_changing_keys: bool,
    /// Number of the configuration, which increases within the process: results are valid for one generation only. 0 trusts no
    /// tokens.
    generation: u64,
}

impl TokenTrust {
    /// Trusts these keys and, if `bootstrap` is set, bootstrap tokens.
    #[must_use]
    pub fn new(keys: TokenKeys, bootstrap: bool) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let generation = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { keys, bootstrap, reviews_foreign_tokens: false, has_changing_keys: false, generation }
    }

    /// Sets whether tokens of any kind are reviewed.
    #[must_use]
    pub fn with_other_tokens(self, reviews_foreign_tokens: bool) -> Self {
        Self { reviews_foreign_tokens, ..self }
    }

    /// Sets whether tokens with unknown keys are reviewed, because keys may change.
    #[must_use]
    pub fn with_changing_keys(self, has_changing_keys: bool) -> Self {
        Self { has_changing_keys, ..self }
    }

    /// True if no key here verifies the token, so that any client may have invented it.
    fn is_unverifiable(&self, token: &str, now: i64) -> bool {
        is_bootstrap(token)
            || ((self.reviews_foreign_tokens || self.has_changing_keys)
                && !matches!(self.keys.verify(token, &[], now), Ok(Some(_))))
    }

    /// True if both configurations are equal except for the generation, so that results remain valid.
    #[must_use]
    pub fn is_equivalent_to(&self, other: &Self) -> bool {
        self.keys == other.keys
            && (self.bootstrap, self.reviews_foreign_tokens, self.has_changing_keys)
                == (other.bootstrap, other.reviews_foreign_tokens, other.has_changing_keys)
    }

    /// Returns the keys, their issuers and the audiences of this API.
    #[must_use]
    pub fn keys(&self) -> &TokenKeys {
        &self.keys
    }
}

/// Cache of reviews.
pub struct TokenReviewCache {
    secret: hmac::Key,
    results: Mutex<ReviewResults>,
    limiter: ReviewLimiter,
    /// Running reviews: at most one per token and generation.
    flights: SingleFlight<(TokenHash, u64), Result<(), TooManyReviews>>,
    metrics: Option<TokenCacheMetrics>,
}

/// Keyed hash of a token.
type TokenHash = [u8; 32];

/// Results of recent reviews.
struct ReviewResults {
    valid: Cache<TokenHash, ValidEntry>,
    invalid: Cache<TokenHash, InvalidEntry>,
    /// Generation of the trust under which the tokens were reviewed. Results of another generation are not used.
    generation: u64,
}

struct ValidEntry {
    user: Arc<UserInfo>,
    expires_at: Instant,
    /// Time of the review.
    reviewed_at: Instant,
}

struct InvalidEntry {
    error: AuthnError,
    expires_at: Instant,
}

impl ReviewResults {
    fn new(generation: u64) -> Self {
        Self { valid: Cache::new(MAX_VALID), invalid: Cache::new(MAX_INVALID), generation }
    }

    /// Returns the results for this trust, after removing results of an older one. `None` if the results are of a newer trust.
    fn for_trust(&mut self, trust: &TokenTrust) -> Option<&mut Self> {
        if self.generation < trust.generation {
            *self = Self::new(trust.generation);
        }
        (self.generation == trust.generation).then_some(self)
    }

    fn lookup(&self, key: &TokenHash, at: Instant) -> Option<CachedReview> {
        if let Some(good) = self.valid.get(key).filter(|good| good.expires_at > at) {
            return Some(CachedReview::User(Arc::clone(&good.user)));
        }
        let bad = self.invalid.get(key).filter(|bad| bad.expires_at > at)?;
        Some(CachedReview::Invalid(bad.error.clone()))
    }

    /// True if the token was valid recently, so that the client has not invented it.
    fn was_recently_valid(&self, key: &TokenHash, at: Instant) -> bool {
        self.valid.get(key).is_some_and(|good| at.duration_since(good.reviewed_at) < STALE_TTL)
    }

    fn insert_valid(&mut self, key: TokenHash, user: UserInfo, at: Instant) {
        self.invalid.remove(&key);
        let user = Arc::new(user);
        self.valid.insert(key, ValidEntry { user, expires_at: at + VALID_TTL, reviewed_at: at });
    }

    fn insert_invalid(&mut self, key: TokenHash, reason: String, at: Instant) {
        self.valid.remove(&key);
        self.invalid.insert(
            key,
            InvalidEntry { error: AuthnError::Token(reason.into()), expires_at: at + INVALID_TTL },
        );
    }

    /// Extends a valid token for a short time, because no reviewer was reached.
    fn extend_valid(&mut self, key: &TokenHash, at: Instant) {
        if self.was_recently_valid(key, at)
            && let Some(mut good) = self.valid.get_mut(key)
        {
            good.expires_at = at + RETRY_INTERVAL;
        }
    }
}

impl Default for TokenReviewCache {
    fn default() -> Self {
        // As long as the digest, and random, so that clients cannot cause collisions in the table.
        let secret: [u8; 32] = rand::random();
        Self {
            secret: hmac::Key::new(hmac::HMAC_SHA256, &secret),
            results: Mutex::new(ReviewResults::new(0)),
            limiter: ReviewLimiter::default(),
            flights: SingleFlight::default(),
            metrics: None,
        }
    }
}

impl TokenReviewCache {
    /// Enables metrics.
    #[must_use]
    pub fn with_metrics(self, metrics: TokenCacheMetrics) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    /// Looks up a token without a review. `now` is in seconds since the epoch, for the dates of the token.
    pub(super) fn lookup(&self, trust: &TokenTrust, token: &str, now: i64) -> CachedReview {
        let bootstrap = trust.bootstrap && is_bootstrap(token);
        if !bootstrap && !trust.reviews_foreign_tokens && !token.contains('.') {
            return CachedReview::NotReviewable;
        }
        let cached =
            self.results.lock().for_trust(trust).and_then(|a| a.lookup(&self.key(token), Instant::now()));
        if let Some(cached) = cached {
            return cached;
        }
        if bootstrap {
            return CachedReview::NeedsReview;
        }
        match trust.keys.verify(token, &[], now) {
            Ok(Some(_)) => CachedReview::NeedsReview,
            Err(TokenRefusal::NoKey) if trust.has_changing_keys => CachedReview::NeedsReview,
            _ if trust.reviews_foreign_tokens => CachedReview::NeedsReview,
            Ok(None) => CachedReview::NotReviewable,
            Err(refused) => CachedReview::Invalid(AuthnError::Token(refused.to_string().into())),
        }
    }

    /// Reviews a token for the client at this address, so that the next lookup finds the result. Concurrent calls for one token
    /// share one review.
    ///
    /// # Errors
    /// [`TooManyReviews`]: the reviewer was not called.
    pub async fn review(
        &self,
        trust: &TokenTrust,
        token: &str,
        client: IpAddr,
        reviewer: &dyn TokenReviewBackend,
    ) -> Result<(), TooManyReviews> {
        let key = self.key(token);
        let _blocked = self.metrics.as_ref().map(TokenCacheMetrics::count_blocked);
        self.flights
            .run(&(key, trust.generation), self.run_review(trust, token, key, (client, reviewer)))
            .await
    }

    async fn run_review(
        &self,
        trust: &TokenTrust,
        token: &str,
        key: TokenHash,
        (client, reviewer): (IpAddr, &dyn TokenReviewBackend),
    ) -> Result<(), TooManyReviews> {
        let start = Instant::now();
        let was_good = self
            .results
            .lock()
            .for_trust(trust)
            .is_some_and(|answers| answers.was_recently_valid(&key, start));
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let is_unknown = !was_good && trust.is_unverifiable(token, seconds);
        let _under_way = is_unknown.then(|| self.limiter.acquire(client, start)).transpose()?;
        let in_flight = self.metrics.as_ref().map(TokenCacheMetrics::count_in_flight);
        let result = reviewer.review(token).await;
        drop(in_flight);
        if let Some(metrics) = &self.metrics {
            metrics.record_review(matches!(result, Ok(Ok(_))));
        }
        let at = Instant::now();
        let mut answers = self.results.lock();
        let Some(answers) = answers.for_trust(trust) else { return Ok(()) };
        match result {
            Ok(Ok(user)) => answers.insert_valid(key, user, at),
            Ok(Err(reason)) => answers.insert_invalid(key, reason, at),
            Err(ReviewError::Unreachable) if !has_expired(token, seconds) => answers.extend_valid(&key, at),
            Err(ReviewError::Unreachable | ReviewError::Failed) => {}
        }
        Ok(())
    }

    fn key(&self, token: &str) -> TokenHash {
        let tag = hmac::sign(&self.secret, token.as_bytes());
        let mut key = [0; 32];
        key.copy_from_slice(tag.as_ref());
        key
    }
}

/// Parses a bootstrap token such as `abcdef.0123456789abcdef`: an ID and a secret of lower-case letters and digits.
#[must_use]
pub fn parse_bootstrap_token(token: &str) -> Option<(&str, &str)> {
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    token
        .split_once('.')
        .filter(|(id, secret)| id.len() == 6 && secret.len() == 16 && plain(id) && plain(secret))
}

/// True for a JWT of any issuer that has expired.
fn has_expired(token: &str, now: i64) -> bool {
    CompactToken::parse(token).is_ok_and(|token| token.claims().check_time(now) == Err(TimeError::Expired))
}

fn is_bootstrap(token: &str) -> bool {
    parse_bootstrap_token(token).is_some()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::jwt::{Claims, PublicKey, SigningKey};

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[derive(Default)]
    struct FakeReviewer {
        reviews: AtomicUsize,
        failure: Option<ReviewError>,
    }

    impl FakeReviewer {
        fn failing(error: ReviewError) -> Self {
            Self { failure: Some(error), ..Self::default() }
        }
    }

    impl TokenReviewBackend for FakeReviewer {
        fn review<'a>(&'a self, token: &'a str) -> TokenReviewFuture<'a> {
            self.reviews.fetch_add(1, Ordering::Relaxed);
            let verdict =
                if token.starts_with("bad") { Err("no".to_owned()) } else { Ok(UserInfo::new("u", [""; 0])) };
            Box::pin(std::future::ready(self.failure.map_or(Ok(verdict), Err)))
        }
    }

    fn poll_ready<F: Future>(future: F) -> F::Output {
        use std::task::{Context, Poll, Waker};
        match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("the future must be ready"),
        }
    }

    fn reviews_with_key() -> (TokenReviewCache, TokenTrust, SigningKey) {
        let key = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
        let keys = TokenKeys {
            issuers: vec!["i".into()],
            audiences: vec!["a".into()],
            keys: vec![PublicKey::from_der(key.public_key().der()).unwrap()],
        };
        (TokenReviewCache::default(), TokenTrust::new(keys, true), key)
    }

    #[test]
    fn tokens_that_no_key_verifies_are_reviewed_and_the_result_is_cached() {
        let (reviews, trust, key) = reviews_with_key();
        let claims =
            |exp| Claims { iss: "i".into(), aud: vec!["a".into()], exp: Some(exp), ..Claims::default() };
        let (good, late) = (key.sign(&claims(100)).unwrap(), key.sign(&claims(1)).unwrap());
        assert_eq!(reviews.lookup(&trust, "plain", 50), CachedReview::NotReviewable);
        assert_eq!(reviews.lookup(&trust, "a.b.c", 50), CachedReview::NotReviewable);
        assert!(matches!(reviews.lookup(&trust, &late, 1_000), CachedReview::Invalid(_)));
        assert_eq!(reviews.lookup(&trust, &good, 50), CachedReview::NeedsReview);
        let reviewer = FakeReviewer::default();
        poll_ready(reviews.review(&trust, &good, CLIENT, &reviewer)).unwrap();
        assert!(matches!(reviews.lookup(&trust, &good, 50), CachedReview::User(user) if user.name == "u"));
        assert_eq!(reviews.lookup(&trust, "abcdef.0123456789abcdef", 50), CachedReview::NeedsReview);
        assert_eq!(reviews.lookup(&trust, "abcdef.0123456789abcdeF", 50), CachedReview::NotReviewable);
        assert_eq!(reviewer.reviews.load(Ordering::Relaxed), 1);
        let more = trust.clone().with_other_tokens(true);
        for token in ["plain", "a.b.c", &late] {
            assert_eq!(
                TokenReviewCache::default().lookup(&more, token, 1_000),
                CachedReview::NeedsReview,
                "another reviewer may accept it"
            );
        }
        let other_trust = TokenTrust::new(TokenKeys::default(), false);
        assert_eq!(
            reviews.lookup(&other_trust, &good, 50),
            CachedReview::NotReviewable,
            "other keys, no cached review"
        );
        assert_eq!(
            reviews.lookup(&trust, &good, 50),
            CachedReview::NeedsReview,
            "the cache was cleared for the other keys"
        );
    }

    #[test]
    fn an_unreachable_reviewer_admits_no_unknown_token() {
        let (reviews, trust, key) = reviews_with_key();
        let token = key.sign(&Claims { iss: "i".into(), ..Claims::default() }).unwrap();
        for error in [ReviewError::Unreachable, ReviewError::Failed] {
            poll_ready(reviews.review(&trust, &token, CLIENT, &FakeReviewer::failing(error))).unwrap();
            assert_eq!(reviews.lookup(&trust, &token, 0), CachedReview::NeedsReview);
        }
    }

    #[test]
    fn a_failing_reviewer_neither_invalidates_nor_extends_tokens() {
        let (reviews, trust, _) = reviews_with_key();
        let token = "abcdef.0123456789abcdef";
        let look = || reviews.lookup(&trust, token, 0);
        poll_ready(reviews.review(&trust, token, CLIENT, &FakeReviewer::default())).unwrap();
        poll_ready(reviews.review(&trust, token, CLIENT, &FakeReviewer::failing(ReviewError::Failed)))
            .unwrap();
        assert!(matches!(look(), CachedReview::User(_)), "the review is still cached");
        let key = reviews.key(token);
        reviews.results.lock().valid.get_mut(&key).unwrap().expires_at = Instant::now();
        poll_ready(reviews.review(&trust, token, CLIENT, &FakeReviewer::failing(ReviewError::Failed)))
            .unwrap();
        assert_eq!(look(), CachedReview::NeedsReview);
        poll_ready(reviews.review(&trust, token, CLIENT, &FakeReviewer::failing(ReviewError::Unreachable)))
            .unwrap();
        assert!(matches!(look(), CachedReview::User(_)), "the reviewer is unreachable");
        poll_ready(reviews.review(&trust, token, CLIENT, &FakeReviewer::default())).unwrap();
        assert!(matches!(look(), CachedReview::User(_)));
    }

    #[test]
    fn an_expired_token_is_not_extended_while_no_reviewer_is_reachable() {
        let (reviews, trust, key) = reviews_with_key();
        let trust = trust.with_other_tokens(true);
        // Expirations in 1970 and in 2096.
        for (exp, counts) in [(1, false), (4_000_000_000, true)] {
            let claims = Claims { iss: "another".into(), exp: Some(exp), ..Claims::default() };
            let token = key.sign(&claims).unwrap();
            poll_ready(reviews.review(&trust, &token, CLIENT, &FakeReviewer::default())).unwrap();
            reviews.results.lock().valid.get_mut(&reviews.key(&token)).unwrap().expires_at = Instant::now();
            poll_ready(reviews.review(
                &trust,
                &token,
                CLIENT,
                &FakeReviewer::failing(ReviewError::Unreachable),
            ))
            .unwrap();
            assert_eq!(
                matches!(reviews.lookup(&trust, &token, 1_000), CachedReview::User(_)),
                counts,
                "{exp}"
            );
        }
    }

    #[test]
    fn invalid_tokens_evict_no_valid_token_and_both_tables_are_bounded() {
        let (reviews, trust, key) = reviews_with_key();
        let token =
            key.sign(&Claims { iss: "i".into(), aud: vec!["a".into()], ..Claims::default() }).unwrap();
        poll_ready(reviews.review(&trust, &token, CLIENT, &FakeReviewer::default())).unwrap();
        for n in 0..=MAX_INVALID {
            poll_ready(reviews.review(&trust, &format!("bad.{n}"), CLIENT, &FakeReviewer::default()))
                .unwrap();
        }
        assert!(matches!(reviews.lookup(&trust, &token, 0), CachedReview::User(_)));
        assert!(reviews.results.lock().invalid.len() <= MAX_INVALID);
        for n in 0..MAX_VALID {
            poll_ready(reviews.review(&trust, &format!("good.{n}"), CLIENT, &FakeReviewer::default()))
                .unwrap();
        }
        assert!(reviews.results.lock().valid.len() <= MAX_VALID);
        let last = format!("good.{}", MAX_VALID - 1);
        assert!(matches!(reviews.lookup(&trust, &last, 0), CachedReview::User(_)), "the newest is kept");
    }

    /// Reviewer during whose review a lookup happens under other keys.
    struct LookupDuringReview<'a>(&'a TokenReviewCache, &'a TokenTrust);

    impl TokenReviewBackend for LookupDuringReview<'_> {
        fn review<'a>(&'a self, token: &'a str) -> TokenReviewFuture<'a> {
            self.0.lookup(self.1, token, 0);
            Box::pin(std::future::ready(Ok(Ok(UserInfo::new("u", [""; 0])))))
        }
    }

    #[test]
    fn a_result_requested_before_a_change_of_trust_is_discarded() {
        let (reviews, trust, _) = reviews_with_key();
        let token = "abcdef.0123456789abcdef";
        let newer = TokenTrust::new(TokenKeys::default(), true);
        poll_ready(reviews.review(&trust, token, CLIENT, &LookupDuringReview(&reviews, &newer))).unwrap();
        assert_eq!(reviews.lookup(&newer, token, 0), CachedReview::NeedsReview);
        poll_ready(reviews.review(&newer, token, CLIENT, &FakeReviewer::default())).unwrap();
        assert!(matches!(reviews.lookup(&newer, token, 0), CachedReview::User(_)));
    }

    #[test]
    fn a_flood_of_bootstrap_tokens_is_limited_and_does_not_affect_other_tokens() {
        let (reviews, trust, key) = reviews_with_key();
        let (reviewer, known_token) = (FakeReviewer::default(), "abcdef.0123456789abcdef");
        poll_ready(reviews.review(&trust, known_token, CLIENT, &reviewer)).unwrap();
        let flood = 10 * MAX_UNKNOWN_REVIEWS_PER_SECOND;
        let token = |n| format!("badbad.{n:016}");
        let start = Instant::now();
        let refused = (0..flood)
            .filter(|n| poll_ready(reviews.review(&trust, &token(*n), CLIENT, &reviewer)).is_err())
            .count();
        let seconds = usize::try_from(start.elapsed().as_secs()).unwrap() + 2;
        assert!(reviewer.reviews.load(Ordering::Relaxed) <= seconds * MAX_UNKNOWN_REVIEWS_PER_SECOND);
        assert!(refused > 0);
        // A recently valid token and a signed token are reviewed without the limit.
        poll_ready(reviews.review(&trust, known_token, CLIENT, &reviewer)).unwrap();
        let signed =
            key.sign(&Claims { iss: "i".into(), aud: vec!["a".into()], ..Claims::default() }).unwrap();
        poll_ready(reviews.review(&trust, &signed, CLIENT, &reviewer)).unwrap();
        assert!(matches!(reviews.lookup(&trust, known_token, 0), CachedReview::User(_)));
        assert!(matches!(reviews.lookup(&trust, &signed, 0), CachedReview::User(_)));
    }
}
