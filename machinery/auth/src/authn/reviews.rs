//! Reviews of tokens that represent objects: keys and dates are checked here, then a reviewer with access to the objects decides.
//!
//! Results are cached for a few seconds, so that the reviewer is called once per token instead of once per request.
//! Tokens are stored as keyed hashes. Reviews of tokens that any client can invent (bootstrap tokens, which have no signature)
//! are rate limited.

mod metrics;
mod unknown;

pub use metrics::TokenCacheMetrics;
pub use unknown::{MAX_UNKNOWN_REVIEWS, MAX_UNKNOWN_REVIEWS_PER_SECOND, TooManyReviews};

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
use super::service_account::{Refused, TokenKeys};
use crate::jwt::{Compact, TimeError};
use unknown::UnknownReviews;

/// Time for which a successful token review is cached.
///
/// Limit (Authentication and authorization): the token is reviewed again.
const GOOD_KEPT: Duration = Duration::from_secs(5);
/// Time for which a failed token review is cached.
///
/// Limit (Authentication and authorization): the token is reviewed again.
const BAD_KEPT: Duration = Duration::from_secs(1);
/// Time for which an authenticated token stays valid while the control service is unavailable.
///
/// Limit (Authentication and authorization): requests with the token get 503.
const STALE_KEPT: Duration = Duration::from_secs(600);
/// Time until the next review after the reviewer could not be reached.
const PAUSE: Duration = Duration::from_secs(1);
/// Cached successful token reviews.
///
/// Limit (Authentication and authorization): the least recently used one is removed.
const MAX_GOOD: usize = 4096;
/// Cached failed token reviews.
///
/// Limit (Authentication and authorization): the least recently used failed one is removed; successful ones stay.
const MAX_BAD: usize = 4096;

/// Future result of a review: the user, or the reason why the token is invalid.
pub type Reviewing<'a> =
    Pin<Box<dyn Future<Output = Result<Result<UserInfo, String>, NoReview>> + Send + 'a>>;

/// Error for which a token was not reviewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReview {
    /// No reviewer was reached. Earlier results remain valid for longer.
    Unreachable,
    /// The reviewer failed. Earlier results are neither extended nor removed.
    Failed,
}

/// Reviewer with access to the objects that tokens represent.
pub trait Reviewer: Send + Sync {
    /// Reviews a token for the audiences of this API.
    fn review<'a>(&'a self, token: &'a str) -> Reviewing<'a>;
}

/// Result of a lookup without a review.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// The token is not of a kind that is reviewed.
    Nothing,
    /// The token is valid and belongs to this user.
    User(Arc<UserInfo>),
    /// The token is invalid.
    Bad(AuthnError),
    /// The token must be reviewed.
    Ask,
}

/// Configuration of the tokens that are reviewed. Immutable: a change of keys creates a new value.
#[derive(Clone, Debug, Default)]
pub struct TokenTrust {
    keys: TokenKeys,
    bootstrap: bool,
    /// True if the reviewer may know tokens that no key here has signed.
    others: bool,
    /// True if keys change, so that the reviewer may know keys that are unknown here.
    keys_change: bool,
    /// Number that increases within the process and identifies results given under other keys; 0 trusts no tokens.
    generation: u64,
}

impl TokenTrust {
    /// Trusts these keys and, if `bootstrap` is set, bootstrap tokens.
    #[must_use]
    pub fn new(keys: TokenKeys, bootstrap: bool) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let generation = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { keys, bootstrap, others: false, keys_change: false, generation }
    }

    /// Sets whether tokens of any kind are reviewed.
    #[must_use]
    pub fn with_others(self, others: bool) -> Self {
        Self { others, ..self }
    }

    /// Sets whether tokens with unknown keys are reviewed, because keys may change.
    #[must_use]
    pub fn with_changing_keys(self, keys_change: bool) -> Self {
        Self { keys_change, ..self }
    }

    /// True if no key here verifies the token, so that any client may have invented it.
    fn is_anybodys(&self, token: &str, now: i64) -> bool {
        is_bootstrap(token)
            || ((self.others || self.keys_change) && !matches!(self.keys.read(token, &[], now), Ok(Some(_))))
    }

    /// True if both configurations are equal except for the generation, so that results remain valid.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        self.keys == other.keys
            && (self.bootstrap, self.others, self.keys_change)
                == (other.bootstrap, other.others, other.keys_change)
    }

    /// Returns the keys, their issuers and the audiences of this API.
    #[must_use]
    pub fn keys(&self) -> &TokenKeys {
        &self.keys
    }
}

/// Cache of reviews.
pub struct Reviews {
    secret: hmac::Key,
    answers: Mutex<Answers>,
    unknown: UnknownReviews,
    /// Running reviews: at most one per token and generation.
    flights: SingleFlight<(Hashed, u64), Result<(), TooManyReviews>>,
    metrics: Option<TokenCacheMetrics>,
}

/// Keyed hash of a token.
type Hashed = [u8; 32];

/// Results of recent reviews.
struct Answers {
    good: Cache<Hashed, Good>,
    bad: Cache<Hashed, Bad>,
    /// Generation of the trust under which the tokens were reviewed. Results of another generation are not used.
    generation: u64,
}

struct Good {
    user: Arc<UserInfo>,
    until: Instant,
    /// Time of the review.
    answered: Instant,
}

struct Bad {
    error: AuthnError,
    until: Instant,
}

impl Answers {
    fn new(generation: u64) -> Self {
        Self { good: Cache::new(MAX_GOOD), bad: Cache::new(MAX_BAD), generation }
    }

    /// Returns the results for this trust, after removing results of an older one. `None` if the results are of a newer trust.
    fn of(&mut self, trust: &TokenTrust) -> Option<&mut Self> {
        if self.generation < trust.generation {
            *self = Self::new(trust.generation);
        }
        (self.generation == trust.generation).then_some(self)
    }

    fn known(&self, key: &Hashed, at: Instant) -> Option<Known> {
        if let Some(good) = self.good.get(key).filter(|good| good.until > at) {
            return Some(Known::User(Arc::clone(&good.user)));
        }
        let bad = self.bad.get(key).filter(|bad| bad.until > at)?;
        Some(Known::Bad(bad.error.clone()))
    }

    /// True if the token was valid recently, so that the client has not invented it.
    fn was_good(&self, key: &Hashed, at: Instant) -> bool {
        self.good.get(key).is_some_and(|good| at.duration_since(good.answered) < STALE_KEPT)
    }

    fn keep_good(&mut self, key: Hashed, user: UserInfo, at: Instant) {
        self.bad.remove(&key);
        let user = Arc::new(user);
        self.good.insert(key, Good { user, until: at + GOOD_KEPT, answered: at });
    }

    fn keep_bad(&mut self, key: Hashed, why: String, at: Instant) {
        self.good.remove(&key);
        self.bad.insert(key, Bad { error: AuthnError::Token(why.into()), until: at + BAD_KEPT });
    }

    /// Extends a valid token for a short time, because no reviewer was reached.
    fn keep_on(&mut self, key: &Hashed, at: Instant) {
        if self.was_good(key, at)
            && let Some(mut good) = self.good.get_mut(key)
        {
            good.until = at + PAUSE;
        }
    }
}

impl Default for Reviews {
    fn default() -> Self {
        // As long as the digest, and random, so that clients cannot cause collisions in the table.
        let secret: [u8; 32] = rand::random();
        Self {
            secret: hmac::Key::new(hmac::HMAC_SHA256, &secret),
            answers: Mutex::new(Answers::new(0)),
            unknown: UnknownReviews::default(),
            flights: SingleFlight::default(),
            metrics: None,
        }
    }
}

impl Reviews {
    /// Enables metrics.
    #[must_use]
    pub fn counted(self, metrics: TokenCacheMetrics) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    /// Looks up a token without a review. `now` is in seconds since the epoch, for the dates of the token.
    pub(super) fn look(&self, trust: &TokenTrust, token: &str, now: i64) -> Known {
        let bootstrap = trust.bootstrap && is_bootstrap(token);
        if !bootstrap && !trust.others && !token.contains('.') {
            return Known::Nothing;
        }
        let known = self.answers.lock().of(trust).and_then(|a| a.known(&self.key(token), Instant::now()));
        if let Some(known) = known {
            return known;
        }
        if bootstrap {
            return Known::Ask;
        }
        match trust.keys.read(token, &[], now) {
            Ok(Some(_)) => Known::Ask,
            Err(Refused::NoKey) if trust.keys_change => Known::Ask,
            _ if trust.others => Known::Ask,
            Ok(None) => Known::Nothing,
            Err(refused) => Known::Bad(AuthnError::Token(refused.to_string().into())),
        }
    }

    /// Reviews a token for the client at this address, so that the next lookup finds the result. Concurrent calls for one token
    /// share one review.
    ///
    /// # Errors
    /// [`TooManyReviews`]: the reviewer was not called.
    pub async fn ask(
        &self,
        trust: &TokenTrust,
        token: &str,
        client: IpAddr,
        reviewer: &dyn Reviewer,
    ) -> Result<(), TooManyReviews> {
        let key = self.key(token);
        let _blocked = self.metrics.as_ref().map(TokenCacheMetrics::blocked);
        self.flights
            .run(&(key, trust.generation), self.ask_keeper(trust, token, key, (client, reviewer)))
            .await
    }

    async fn ask_keeper(
        &self,
        trust: &TokenTrust,
        token: &str,
        key: Hashed,
        (client, reviewer): (IpAddr, &dyn Reviewer),
    ) -> Result<(), TooManyReviews> {
        let begin = Instant::now();
        let was_good = self.answers.lock().of(trust).is_some_and(|answers| answers.was_good(&key, begin));
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let is_unknown = !was_good && trust.is_anybodys(token, seconds);
        let _under_way = is_unknown.then(|| self.unknown.begin(client, begin)).transpose()?;
        let in_flight = self.metrics.as_ref().map(TokenCacheMetrics::in_flight);
        let answer = reviewer.review(token).await;
        drop(in_flight);
        if let Some(metrics) = &self.metrics {
            metrics.fetched(matches!(answer, Ok(Ok(_))));
        }
        let at = Instant::now();
        let mut answers = self.answers.lock();
        let Some(answers) = answers.of(trust) else { return Ok(()) };
        match answer {
            Ok(Ok(user)) => answers.keep_good(key, user, at),
            Ok(Err(why)) => answers.keep_bad(key, why, at),
            Err(NoReview::Unreachable) if !has_expired(token, seconds) => answers.keep_on(&key, at),
            Err(NoReview::Unreachable | NoReview::Failed) => {}
        }
        Ok(())
    }

    fn key(&self, token: &str) -> Hashed {
        let tag = hmac::sign(&self.secret, token.as_bytes());
        let mut key = [0; 32];
        key.copy_from_slice(tag.as_ref());
        key
    }
}

/// Parses a bootstrap token such as `abcdef.0123456789abcdef`: an ID and a secret of lower-case letters and digits.
#[must_use]
pub fn bootstrap_token(token: &str) -> Option<(&str, &str)> {
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    token
        .split_once('.')
        .filter(|(id, secret)| id.len() == 6 && secret.len() == 16 && plain(id) && plain(secret))
}

/// True for a JWT of any issuer that has expired.
fn has_expired(token: &str, now: i64) -> bool {
    Compact::parse(token).is_ok_and(|token| token.claims().check_time(now) == Err(TimeError::Expired))
}

fn is_bootstrap(token: &str) -> bool {
    bootstrap_token(token).is_some()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::jwt::{Claims, PublicKey, SigningKey};

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[derive(Default)]
    struct Keeper {
        asked: AtomicUsize,
        away: Option<NoReview>,
    }

    impl Keeper {
        fn away(why: NoReview) -> Self {
            Self { away: Some(why), ..Self::default() }
        }
    }

    impl Reviewer for Keeper {
        fn review<'a>(&'a self, token: &'a str) -> Reviewing<'a> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let verdict =
                if token.starts_with("bad") { Err("no".to_owned()) } else { Ok(UserInfo::new("u", [""; 0])) };
            Box::pin(std::future::ready(self.away.map_or(Ok(verdict), Err)))
        }
    }

    fn now<F: Future>(future: F) -> F::Output {
        use std::task::{Context, Poll, Waker};
        match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("nothing here waits"),
        }
    }

    fn trusting() -> (Reviews, TokenTrust, SigningKey) {
        let key = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
        let keys = TokenKeys {
            issuers: vec!["i".into()],
            audiences: vec!["a".into()],
            keys: vec![PublicKey::from_der(key.public().der()).unwrap()],
        };
        (Reviews::default(), TokenTrust::new(keys, true), key)
    }

    #[test]
    fn tokens_that_no_key_verifies_are_reviewed_and_the_answer_is_kept() {
        let (reviews, trust, key) = trusting();
        let claims =
            |exp| Claims { iss: "i".into(), aud: vec!["a".into()], exp: Some(exp), ..Claims::default() };
        let (good, late) = (key.sign(&claims(100)).unwrap(), key.sign(&claims(1)).unwrap());
        assert_eq!(reviews.look(&trust, "plain", 50), Known::Nothing);
        assert_eq!(reviews.look(&trust, "a.b.c", 50), Known::Nothing);
        assert!(matches!(reviews.look(&trust, &late, 1_000), Known::Bad(_)));
        assert_eq!(reviews.look(&trust, &good, 50), Known::Ask);
        let keeper = Keeper::default();
        now(reviews.ask(&trust, &good, CLIENT, &keeper)).unwrap();
        assert!(matches!(reviews.look(&trust, &good, 50), Known::User(user) if user.name == "u"));
        assert_eq!(reviews.look(&trust, "abcdef.0123456789abcdef", 50), Known::Ask);
        assert_eq!(reviews.look(&trust, "abcdef.0123456789abcdeF", 50), Known::Nothing);
        assert_eq!(keeper.asked.load(Ordering::Relaxed), 1);
        let more = trust.clone().with_others(true);
        for token in ["plain", "a.b.c", &late] {
            assert_eq!(Reviews::default().look(&more, token, 1_000), Known::Ask, "somebody else may know it");
        }
        let others = TokenTrust::new(TokenKeys::default(), false);
        assert_eq!(reviews.look(&others, &good, 50), Known::Nothing, "other keys, nothing kept");
        assert_eq!(reviews.look(&trust, &good, 50), Known::Ask, "who still has the older keys keeps nothing");
    }

    #[test]
    fn a_keeper_that_is_away_lets_nobody_in_who_was_not_known() {
        let (reviews, trust, key) = trusting();
        let token = key.sign(&Claims { iss: "i".into(), ..Claims::default() }).unwrap();
        for why in [NoReview::Unreachable, NoReview::Failed] {
            now(reviews.ask(&trust, &token, CLIENT, &Keeper::away(why))).unwrap();
            assert_eq!(reviews.look(&trust, &token, 0), Known::Ask);
        }
    }

    #[test]
    fn a_keeper_that_fails_makes_no_token_bad_and_none_good_for_longer() {
        let (reviews, trust, _) = trusting();
        let token = "abcdef.0123456789abcdef";
        let look = || reviews.look(&trust, token, 0);
        now(reviews.ask(&trust, token, CLIENT, &Keeper::default())).unwrap();
        now(reviews.ask(&trust, token, CLIENT, &Keeper::away(NoReview::Failed))).unwrap();
        assert!(matches!(look(), Known::User(_)), "within the life of the answer");
        let key = reviews.key(token);
        reviews.answers.lock().good.get_mut(&key).unwrap().until = Instant::now();
        now(reviews.ask(&trust, token, CLIENT, &Keeper::away(NoReview::Failed))).unwrap();
        assert_eq!(look(), Known::Ask);
        now(reviews.ask(&trust, token, CLIENT, &Keeper::away(NoReview::Unreachable))).unwrap();
        assert!(matches!(look(), Known::User(_)), "nobody can be asked");
        now(reviews.ask(&trust, token, CLIENT, &Keeper::default())).unwrap();
        assert!(matches!(look(), Known::User(_)));
    }

    #[test]
    fn a_token_that_has_expired_is_not_good_for_longer_while_nobody_can_be_asked() {
        let (reviews, trust, key) = trusting();
        let trust = trust.with_others(true);
        // Expirations in 1970 and in 2096.
        for (exp, counts) in [(1, false), (4_000_000_000, true)] {
            let claims = Claims { iss: "another".into(), exp: Some(exp), ..Claims::default() };
            let token = key.sign(&claims).unwrap();
            now(reviews.ask(&trust, &token, CLIENT, &Keeper::default())).unwrap();
            reviews.answers.lock().good.get_mut(&reviews.key(&token)).unwrap().until = Instant::now();
            now(reviews.ask(&trust, &token, CLIENT, &Keeper::away(NoReview::Unreachable))).unwrap();
            assert_eq!(matches!(reviews.look(&trust, &token, 1_000), Known::User(_)), counts, "{exp}");
        }
    }

    #[test]
    fn bad_tokens_push_out_no_good_one_and_both_tables_are_bounded() {
        let (reviews, trust, key) = trusting();
        let token =
            key.sign(&Claims { iss: "i".into(), aud: vec!["a".into()], ..Claims::default() }).unwrap();
        now(reviews.ask(&trust, &token, CLIENT, &Keeper::default())).unwrap();
        for n in 0..=MAX_BAD {
            now(reviews.ask(&trust, &format!("bad.{n}"), CLIENT, &Keeper::default())).unwrap();
        }
        assert!(matches!(reviews.look(&trust, &token, 0), Known::User(_)));
        assert!(reviews.answers.lock().bad.len() <= MAX_BAD);
        for n in 0..MAX_GOOD {
            now(reviews.ask(&trust, &format!("good.{n}"), CLIENT, &Keeper::default())).unwrap();
        }
        assert!(reviews.answers.lock().good.len() <= MAX_GOOD);
        let last = format!("good.{}", MAX_GOOD - 1);
        assert!(matches!(reviews.look(&trust, &last, 0), Known::User(_)), "the newest is kept");
    }

    /// Reviewer during whose review a lookup happens under other keys.
    struct Racing<'a>(&'a Reviews, &'a TokenTrust);

    impl Reviewer for Racing<'_> {
        fn review<'a>(&'a self, token: &'a str) -> Reviewing<'a> {
            self.0.look(self.1, token, 0);
            Box::pin(std::future::ready(Ok(Ok(UserInfo::new("u", [""; 0])))))
        }
    }

    #[test]
    fn an_answer_that_was_asked_for_before_trust_changed_counts_no_more() {
        let (reviews, trust, _) = trusting();
        let token = "abcdef.0123456789abcdef";
        let newer = TokenTrust::new(TokenKeys::default(), true);
        now(reviews.ask(&trust, token, CLIENT, &Racing(&reviews, &newer))).unwrap();
        assert_eq!(reviews.look(&newer, token, 0), Known::Ask);
        now(reviews.ask(&newer, token, CLIENT, &Keeper::default())).unwrap();
        assert!(matches!(reviews.look(&newer, token, 0), Known::User(_)));
    }

    #[test]
    fn a_flood_of_bootstrap_tokens_is_reviewed_within_the_limit_and_costs_others_nothing() {
        let (reviews, trust, key) = trusting();
        let (keeper, ours) = (Keeper::default(), "abcdef.0123456789abcdef");
        now(reviews.ask(&trust, ours, CLIENT, &keeper)).unwrap();
        let flood = 10 * MAX_UNKNOWN_REVIEWS_PER_SECOND;
        let token = |n| format!("badbad.{n:016}");
        let begin = Instant::now();
        let refused =
            (0..flood).filter(|n| now(reviews.ask(&trust, &token(*n), CLIENT, &keeper)).is_err()).count();
        let seconds = usize::try_from(begin.elapsed().as_secs()).unwrap() + 2;
        assert!(keeper.asked.load(Ordering::Relaxed) <= seconds * MAX_UNKNOWN_REVIEWS_PER_SECOND);
        assert!(refused > 0);
        // A recently valid token and a signed token are reviewed without the limit.
        now(reviews.ask(&trust, ours, CLIENT, &keeper)).unwrap();
        let signed =
            key.sign(&Claims { iss: "i".into(), aud: vec!["a".into()], ..Claims::default() }).unwrap();
        now(reviews.ask(&trust, &signed, CLIENT, &keeper)).unwrap();
        assert!(matches!(reviews.look(&trust, ours, 0), Known::User(_)));
        assert!(matches!(reviews.look(&trust, &signed, 0), Known::User(_)));
    }
}
