//! Histogram whose bucket bounds are shared by a family: there is one histogram for each label set, and thousands of label
//! sets, so each histogram contains only its counts. Observing takes no lock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// Histogram with fixed buckets. Clones share it.
#[derive(Clone, Debug)]
pub struct Histogram(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Upper bounds, ascending, without infinity.
    bounds: &'static [f64],
    /// Bits of the floating-point sum of all values.
    sum: AtomicU64,
    /// Number of values in each bucket; the last one has no upper bound.
    counts: Box<[AtomicU64]>,
}

impl Histogram {
    /// Returns a histogram without observations.
    #[must_use]
    pub fn new(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Inner { bounds, sum: AtomicU64::new(0f64.to_bits()), counts }))
    }

    /// Counts a value in the first bucket whose bound it does not exceed.
    pub fn observe(&self, value: f64) {
        let inner = &*self.0;
        // NaN belongs to the last bucket.
        let bucket = inner.bounds.iter().position(|bound| value <= *bound).unwrap_or(inner.bounds.len());
        inner.counts[bucket].fetch_add(1, Ordering::Relaxed);
        let add = |sum| Some((f64::from_bits(sum) + value).to_bits());
        // The update is retried until no other thread interferes, so it always succeeds.
        let _always_added = inner.sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }
}

impl Histogram {
    /// Returns the number of values in each bucket; the last one has no upper bound.
    pub fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.counts.iter().map(|count| count.load(Ordering::Relaxed))
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let inner = &*self.0;
        let sum = f64::from_bits(inner.sum.load(Ordering::Relaxed));
        let bounds = inner.bounds.iter().copied().chain([f64::INFINITY]);
        let counts = inner.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_in_the_first_bucket_with_a_sufficient_bound() {
        let histogram = Histogram::new(&[0.5, 1.0]);
        for value in [0.0, 0.5, 0.75, 1.0, 2.0, f64::INFINITY] {
            histogram.observe(value);
        }
        let counts: Vec<u64> = histogram.0.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        assert_eq!(counts, [2, 2, 2]);
    }

    #[test]
    fn values_of_many_threads_all_count() {
        let histogram = Histogram::new(&[1.0]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1_000).for_each(|_| histogram.observe(0.5)));
            }
        });
        assert_eq!(f64::from_bits(histogram.0.sum.load(Ordering::Relaxed)), 2_000.0);
        assert_eq!(histogram.0.counts[0].load(Ordering::Relaxed), 4_000);
    }
}
