//! Upstream's metrics of the token cache (pkg/authentication/token/cache). Every series is created once.

use std::time::Duration;

use portico_kit::metrics::{Desc, Histogram, HistogramVec, Registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

type Label = [(&'static str, &'static str); 1];

/// Upper bounds in seconds (`DefBuckets` of Prometheus).
const SECONDS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Metrics `authentication_token_cache_*`.
#[derive(Clone)]
pub struct TokenCacheMetrics {
    hit: RequestMetrics,
    miss: RequestMetrics,
    ok: Counter,
    error: Counter,
    in_flight: Gauge,
    blocked: Gauge,
}

/// Metrics of requests with one status.
#[derive(Clone)]
struct RequestMetrics {
    count: Counter,
    seconds: Histogram,
}

impl TokenCacheMetrics {
    /// Registers the metrics.
    #[must_use]
    pub fn new(registry: &Registry) -> Self {
        let counts: Family<Label, Counter> = registry.counter_vec(Desc::counter(
            "authentication_token_cache_request_total",
            &["status"],
            "[ALPHA] Requests with a bearer token, by cache status",
        ));
        let seconds: HistogramVec<Label> = registry.histogram_vec(
            Desc::histogram(
                "authentication_token_cache_request_duration_seconds",
                &["status"],
                "[ALPHA] Time in seconds to authenticate a token, by cache status",
            ),
            SECONDS,
        );
        let fetches: Family<Label, Counter> = registry.counter_vec(Desc::counter(
            "authentication_token_cache_fetch_total",
            &["status"],
            "[ALPHA] Token reviews by status",
        ));
        let active: Family<Label, Gauge> = registry.gauge_vec(Desc::gauge(
            "authentication_token_cache_active_fetch_count",
            &["status"],
            "[ALPHA] Token reviews in flight (in_flight) and requests that wait for one \
             (blocked)",
        ));
        let requests = |status| RequestMetrics {
            count: counts.get_or_create_owned(&[("status", status)]),
            seconds: seconds.get_or_create_owned(&[("status", status)]),
        };
        Self {
            hit: requests("hit"),
            miss: requests("miss"),
            ok: fetches.get_or_create_owned(&[("status", "ok")]),
            error: fetches.get_or_create_owned(&[("status", "error")]),
            in_flight: active.get_or_create_owned(&[("status", "in_flight")]),
            blocked: active.get_or_create_owned(&[("status", "blocked")]),
        }
    }

    /// Records a request: a hit if the token was in the cache, a miss if it had to be reviewed.
    pub fn record_request(&self, is_hit: bool, duration: Duration) {
        let outcome = if is_hit { &self.hit } else { &self.miss };
        outcome.count.inc();
        outcome.seconds.observe(duration.as_secs_f64());
    }

    /// Counts a request as waiting for a review until the guard is dropped.
    pub(super) fn count_blocked(&self) -> GaugeGuard {
        GaugeGuard::new(&self.blocked)
    }

    /// Counts a review as running until the guard is dropped.
    pub(super) fn count_in_flight(&self) -> GaugeGuard {
        GaugeGuard::new(&self.in_flight)
    }

    /// Records the end of a review.
    pub(super) fn record_review(&self, is_ok: bool) {
        if is_ok {
            self.ok.inc()
        } else {
            self.error.inc()
        };
    }
}

/// Guard that increments a gauge until it is dropped.
pub(super) struct GaugeGuard(Gauge);

impl GaugeGuard {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}
