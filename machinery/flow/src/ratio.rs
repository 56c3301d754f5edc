//! Histogram of a ratio over time (upstream's `TimingRatioHistogram`), with one observation per nanosecond.

use std::time::Instant;

use crate::counts::FlowHistogram;

/// Bucket bounds of running or waiting requests in a level, relative to its limit.
pub(crate) const REQUEST_BUCKETS: &[f64] = &[0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0];
/// Bucket bounds of seats in use, relative to the limit of the level.
pub(crate) const UTILIZATION_BUCKETS: &[f64] =
    &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
/// Bucket bounds of seats that a level could use, relative to its limit.
pub(crate) const DEMAND_BUCKETS: &[f64] = &[0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 6.0];
/// Bucket bounds of reading and of mutating requests, relative to the limit of the server.
pub(crate) const CURRENT_BUCKETS: &[f64] =
    &[0.0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];

/// Ratio over time.
#[derive(Clone, Debug)]
pub(crate) struct TimedRatio {
    histogram: FlowHistogram,
    numerator: u32,
    denominator: u32,
    last_change: Instant,
}

impl TimedRatio {
    /// Returns a ratio that starts as 0/1.
    pub(crate) fn new(bounds: &'static [f64], now: Instant) -> Self {
        Self { histogram: FlowHistogram::new(bounds), numerator: 0, denominator: 1, last_change: now }
    }

    /// Sets the numerator from `now` on.
    pub(crate) fn set_numerator(&mut self, numerator: u32, now: Instant) {
        if numerator != self.numerator {
            self.accumulate(now);
            self.numerator = numerator;
        }
    }

    /// Sets the denominator from `now` on.
    pub(crate) fn set_denominator(&mut self, denominator: u32, now: Instant) {
        if denominator != self.denominator {
            self.accumulate(now);
            self.denominator = denominator.max(1);
        }
    }

    /// Returns the histogram up to `now`.
    pub(crate) fn histogram_at(&self, now: Instant) -> FlowHistogram {
        let mut copy = self.clone();
        copy.accumulate(now);
        copy.histogram
    }

    fn accumulate(&mut self, now: Instant) {
        let nanos = now.saturating_duration_since(self.last_change).as_nanos();
        self.last_change = self.last_change.max(now);
        let ratio = f64::from(self.numerator) / f64::from(self.denominator);
        self.histogram.observe_weighted(ratio, u64::try_from(nanos).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_ratio_counts_for_as_long_as_it_lasts() {
        let start = Instant::now();
        let at = |nanos| start + Duration::from_nanos(nanos);
        let mut ratio = TimedRatio::new(DEMAND_BUCKETS, start);
        ratio.set_denominator(10, start);
        ratio.set_numerator(5, at(100));
        ratio.set_numerator(5, at(150));
        ratio.set_denominator(5, at(300));
        let histogram = ratio.histogram_at(at(1000));
        assert_eq!((histogram.counts[0], histogram.counts[2], histogram.counts[4]), (100, 200, 700));
        assert_eq!(histogram.sum, 200.0 * 0.5 + 700.0);
        assert_eq!(histogram.counts.iter().sum::<u64>(), 1000);
    }
}
