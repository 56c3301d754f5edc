//! Results of authentication and authorization, under upstream's names. All series are created at the start.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portico_auth::Verdict;
use portico_auth::authn::TokenCacheMetrics;
use portico_kit::metrics::{Desc, Histogram, HistogramVec, Registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// Upstream's buckets: 15, doubling from 1 ms.
const SECONDS: &[f64] = &[
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
];
/// Upstream's buckets: from half an hour to a year.
const CERTIFICATE_SECONDS: &[f64] = &[
    0.0,
    1800.0,
    3600.0,
    7200.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    345_600.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
];
/// Users that upstream counts by name.
const NAMED: [&str; 5] =
    ["admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"];

type Label = [(&'static str, &'static str); 1];

/// Number and duration of the attempts with one result.
#[derive(Clone)]
struct Attempts {
    count: Counter,
    seconds: Histogram,
}

impl Attempts {
    fn new(counts: &Family<Label, Counter>, seconds: &HistogramVec<Label>, result: &'static str) -> Self {
        let label = [("result", result)];
        Self { count: counts.get_or_create_owned(&label), seconds: seconds.get_or_create_owned(&label) }
    }

    fn record(&self, took: Duration) {
        self.count.inc();
        self.seconds.observe(took.as_secs_f64());
    }
}

/// Result of the authentication of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthenticationResult<'a> {
    /// Authenticated as this user, including anonymous callers.
    User(&'a str),
    /// No credentials.
    NoCredentials,
    /// Invalid credentials.
    InvalidCredentials,
}

/// `authentication_attempts`, `authentication_duration_seconds`, `authenticated_user_requests`, and the duration of the filter.
#[derive(Clone)]
pub struct AuthenticationMetrics {
    filter: Histogram,
    success: Attempts,
    failure: Attempts,
    error: Attempts,
    known_users: [Counter; 5],
    email: Counter,
    other: Counter,
    tokens: TokenCacheMetrics,
    certificates: Histogram,
}

impl AuthenticationMetrics {
    /// Registers the metrics; `filter` is `apiserver_request_filter_duration_seconds{filter="authentication"}`.
    #[must_use]
    pub fn new(registry: &Registry, filter: Histogram) -> Self {
        let counts = registry.counter_vec(Desc::counter(
            "authentication_attempts",
            &["result"],
            "[ALPHA] Counter of authenticated attempts.",
        ));
        let seconds = registry.histogram_vec(
            Desc::histogram(
                "authentication_duration_seconds",
                &["result"],
                "[ALPHA] Authentication duration in seconds broken out by result.",
            ),
            SECONDS,
        );
        let users: Family<Label, Counter> = registry.counter_vec(Desc::counter(
            "authenticated_user_requests",
            &["username"],
            "[ALPHA] Counter of authenticated requests broken out by username.",
        ));
        let user = |name| users.get_or_create_owned(&[("username", name)]);
        let attempts = |result| Attempts::new(&counts, &seconds, result);
        Self {
            filter,
            success: attempts("success"),
            failure: attempts("failure"),
            error: attempts("error"),
            known_users: NAMED.map(user),
            email: user("email_id"),
            other: user("other"),
            tokens: TokenCacheMetrics::new(registry),
            certificates: registry.histogram(
                Desc::histogram(
                    "apiserver_client_certificate_expiration_seconds",
                    &[],
                    "[ALPHA] Distribution of the remaining lifetime on the certificate used to \
                     authenticate a request.",
                ),
                CERTIFICATE_SECONDS,
            ),
        }
    }

    /// Records the authentication of a token: from the cache, or by a review.
    pub fn record_token(&self, was_cached: bool, took: Duration) {
        self.tokens.record_request(was_cached, took);
    }

    /// Records a client certificate, valid until `not_after` in seconds since the epoch.
    pub fn record_certificate(&self, not_after: i64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "a histogram of lifetimes needs no exact seconds")]
        self.certificates.observe(not_after as f64 - now.as_secs_f64());
    }

    /// Records the result of a request.
    pub fn record_result(&self, outcome: AuthenticationResult<'_>, took: Duration) {
        self.filter.observe(took.as_secs_f64());
        match outcome {
            AuthenticationResult::User(name) => {
                self.success.record(took);
                self.user(name).inc();
            }
            AuthenticationResult::NoCredentials => self.failure.record(took),
            AuthenticationResult::InvalidCredentials => self.error.record(took),
        }
    }

    fn user(&self, name: &str) -> &Counter {
        match NAMED.iter().position(|known_name| *known_name == name) {
            Some(at) => &self.known_users[at],
            None if name.contains('@') => &self.email,
            None => &self.other,
        }
    }
}

/// `authorization_attempts_total`, `authorization_duration_seconds`, and the duration of the filter.
#[derive(Clone)]
pub struct AuthorizationMetrics {
    filter: Histogram,
    allowed: Attempts,
    denied: Attempts,
    no_opinion: Attempts,
    error: Attempts,
}

impl AuthorizationMetrics {
    /// Registers the metrics; `filter` is `apiserver_request_filter_duration_seconds{filter="authorization"}`.
    #[must_use]
    pub fn new(registry: &Registry, filter: Histogram) -> Self {
        let counts = registry.counter_vec(Desc::counter(
            "authorization_attempts_total",
            &["result"],
            "[ALPHA] Counter of authorization attempts broken down by result. It can be \
             either 'allowed', 'denied', 'no-opinion' or 'error'.",
        ));
        let seconds = registry.histogram_vec(
            Desc::histogram(
                "authorization_duration_seconds",
                &["result"],
                "[ALPHA] Authorization duration in seconds broken out by result.",
            ),
            SECONDS,
        );
        let attempts = |result| Attempts::new(&counts, &seconds, result);
        Self {
            filter,
            allowed: attempts("allowed"),
            denied: attempts("denied"),
            no_opinion: attempts("no-opinion"),
            error: attempts("error"),
        }
    }

    /// Records the result of a request; `verdict` is `None` if no decision could be obtained.
    pub fn record_result(&self, verdict: Option<Verdict>, took: Duration) {
        self.filter.observe(took.as_secs_f64());
        match verdict {
            Some(Verdict::Allow) => self.allowed.record(took),
            Some(Verdict::Deny) => self.denied.record(took),
            Some(Verdict::NoOpinion) => self.no_opinion.record(took),
            Some(Verdict::Delegate) | None => self.error.record(took),
        }
    }
}

#[cfg(test)]
mod tests {
    use portico_kit::metrics::Format;

    use super::*;

    #[test]
    fn callers_are_counted_by_result_and_few_of_them_by_name() {
        let registry = Registry::new();
        let histogram = registry.histogram(Desc::histogram("filter_seconds", &[], "Filter"), &[1.0]);
        let metrics = AuthenticationMetrics::new(&registry, histogram);
        for name in ["admin", "me@example.com", "system:anonymous", "alice"] {
            metrics.record_result(AuthenticationResult::User(name), Duration::from_millis(3));
        }
        metrics.record_result(AuthenticationResult::InvalidCredentials, Duration::ZERO);
        metrics.record_certificate(0);
        let text = registry.encode(Format::Text);
        for line in [
            "apiserver_client_certificate_expiration_seconds_bucket{le=\"0.0\"} 1",
            "authentication_attempts{result=\"success\"} 4",
            "authentication_attempts{result=\"error\"} 1",
            "authentication_duration_seconds_bucket{le=\"0.004\",result=\"success\"} 4",
            "authenticated_user_requests{username=\"admin\"} 1",
            "authenticated_user_requests{username=\"email_id\"} 1",
            "authenticated_user_requests{username=\"other\"} 2",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
