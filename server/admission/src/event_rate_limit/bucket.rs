//! Token bucket (`rate.Limiter` of golang.org/x/time): initially full, refilled at a constant rate.

use std::time::Duration;

use super::configuration::Limit;

/// Token bucket. Times are durations since the plugin was created.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    tokens: f64,
    refilled_at: Duration,
}

impl Bucket {
    pub(super) fn full(limit: &Limit, now: Duration) -> Self {
        Self { tokens: f64::from(limit.burst), refilled_at: now }
    }

    /// Takes a token, if one is available.
    pub(super) fn try_take(&mut self, limit: &Limit, now: Duration) -> bool {
        let gained = now.saturating_sub(self.refilled_at).as_secs_f64() * f64::from(limit.qps);
        let tokens = (self.tokens + gained).min(f64::from(limit.burst));
        if tokens < 1.0 {
            return false;
        }
        *self = Self { tokens: tokens - 1.0, refilled_at: self.refilled_at.max(now) };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::configuration::LimitType;
    use super::*;

    #[test]
    fn a_bucket_allows_its_burst_and_then_its_rate() {
        let limit = Limit { ty: LimitType::Server, qps: 2, burst: 3, cache_size: 0 };
        let mut bucket = Bucket::full(&limit, Duration::ZERO);
        for (millis, expected) in [
            (0, true),
            (0, true),
            (0, true),
            (0, false),
            (499, false),
            (500, true),
            (500, false),
            // A clock that goes backwards adds no tokens.
            (100, false),
            (60_000, true),
            (60_000, true),
            (60_000, true),
            (60_000, false),
        ] {
            assert_eq!(bucket.try_take(&limit, Duration::from_millis(millis)), expected, "at {millis} ms");
        }
    }
}
