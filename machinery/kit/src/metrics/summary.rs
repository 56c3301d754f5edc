//! Summary: count, sum, and quantiles of recent values, as client_golang's `Summary` exposes them.
//!
//! Values are counted in buckets of equal relative width, so that a quantile is the value of exactly its rank with a relative
//! error of at most 1/64 (client_golang guarantees a rank instead). Values outside of [`MIN_VALUE`] and [`MAX_VALUE`] count as
//! these. The age is divided into [`WINDOWS`], as in client_golang. A series takes 4 KiB for each window that has a value;
//! observing holds a lock for one addition.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, LabelSetEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::Labels;

/// Exposed quantiles: component-base's `defObjectives`.
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];
/// Number of windows: client_golang's `DefAgeBuckets`.
const WINDOWS: u32 = 5;
/// Bits of the mantissa that select a bucket: each power of two has 2^5 buckets.
const BITS_OF_MANTISSA: u32 = 5;
const SHIFT: u32 = f64::MANTISSA_DIGITS - 1 - BITS_OF_MANTISSA;
/// Smallest value: 2^-23, about an eighth of a microsecond.
const MIN_VALUE: f64 = 1.0 / 8_388_608.0;
/// Largest value: 2^7, about two minutes.
const MAX_VALUE: f64 = 128.0;
const FIRST_BUCKET: u64 = MIN_VALUE.to_bits() >> SHIFT;
const BUCKETS: usize = ((MAX_VALUE.to_bits() >> SHIFT) - FIRST_BUCKET) as usize + 1;

/// Summaries of a family by label set. Clones share them.
#[derive(Clone, Debug)]
pub struct SummaryVec<L> {
    max_age: Duration,
    series: Arc<RwLock<HashMap<L, Summary>>>,
}

/// Summary of one series. Clones share it.
#[derive(Clone, Debug)]
pub struct Summary(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    started_at: Instant,
    /// Length of a window.
    period: Duration,
    state: Mutex<SummaryState>,
}

#[derive(Debug, Default)]
struct SummaryState {
    sum: f64,
    count: u64,
    /// Windows, newest last.
    windows: VecDeque<Window>,
}

#[derive(Debug)]
struct Window {
    /// Number of periods since the summary was created.
    number: u64,
    counts: Box<[u32]>,
}

impl<L: Labels> SummaryVec<L> {
    pub(super) fn new(max_age: Duration) -> Self {
        Self { max_age, series: Arc::default() }
    }

    /// Returns the summary of these labels, which is created if necessary.
    pub fn get_or_create(&self, labels: &L) -> Summary {
        if let Some(known) = self.series.read().get(labels) {
            return known.clone();
        }
        let mut series = self.series.write();
        series.entry(labels.clone()).or_insert_with(|| Summary::new(self.max_age)).clone()
    }
}

impl Summary {
    fn new(max_age: Duration) -> Self {
        let period = (max_age / WINDOWS).max(Duration::from_nanos(1));
        Self(Arc::new(Inner { started_at: Instant::now(), period, state: Mutex::default() }))
    }

    /// Counts a value.
    pub fn observe(&self, value: f64) {
        let now = self.current_window();
        self.0.state.lock().add(value, now);
    }

    /// Returns the number of the current window.
    fn current_window(&self) -> u64 {
        let periods = self.0.started_at.elapsed().as_nanos() / self.0.period.as_nanos();
        u64::try_from(periods).unwrap_or(u64::MAX)
    }
}

impl SummaryState {
    fn add(&mut self, value: f64, now: u64) {
        self.sum += value;
        self.count += 1;
        // A thread that read the clock earlier may arrive later: its value is added to the newer window.
        if self.windows.back().is_none_or(|youngest| youngest.number < now) {
            self.open_window(now);
        }
        if let Some(count) = self.windows.back_mut().and_then(|window| window.counts.get_mut(bucket(value))) {
            *count = count.saturating_add(1);
        }
    }

    /// Opens a window, and reuses the memory of the oldest window if that is too old.
    fn open_window(&mut self, number: u64) {
        let oldest = self.windows.pop_front_if(|oldest| !oldest.is_recent_at(number));
        let mut counts = oldest.map_or_else(|| vec![0; BUCKETS].into_boxed_slice(), |oldest| oldest.counts);
        counts.fill(0);
        self.windows.retain(|window| window.is_recent_at(number));
        self.windows.push_back(Window { number, counts });
    }

    /// Returns the quantiles of all windows that are recent enough; NaN if there are no values.
    fn quantiles(&self, now: u64) -> [f64; 3] {
        let mut counts = vec![0u64; BUCKETS];
        for window in self.windows.iter().filter(|window| window.is_recent_at(now)) {
            counts.iter_mut().zip(&window.counts).for_each(|(sum, count)| *sum += u64::from(*count));
        }
        let all: u64 = counts.iter().sum();
        QUANTILES.map(|quantile| {
            let rank = (quantile * all as f64).ceil() as u64;
            let mut below = 0;
            let bucket = counts.iter().position(|count| {
                below += count;
                *count > 0 && below >= rank
            });
            bucket.map_or(f64::NAN, bucket_middle)
        })
    }
}

impl Window {
    /// True if the window is recent enough for quantiles at `now`.
    fn is_recent_at(&self, now: u64) -> bool {
        self.number.saturating_add(u64::from(WINDOWS)) > now
    }
}

/// Returns the bucket of a value: its exponent and the first bits of its mantissa. NaN counts as the smallest value.
fn bucket(value: f64) -> usize {
    let within = if value > MIN_VALUE { value.min(MAX_VALUE) } else { MIN_VALUE };
    ((within.to_bits() >> SHIFT) - FIRST_BUCKET) as usize
}

/// Returns the value in the middle of a bucket.
fn bucket_middle(bucket: usize) -> f64 {
    f64::from_bits(((FIRST_BUCKET + bucket as u64) << SHIFT) | (1 << (SHIFT - 1)))
}

impl<L: Labels> EncodeMetric for SummaryVec<L> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (labels, summary) in self.series.read().iter() {
            let (sum, count, values) = {
                let (now, observed) = (summary.current_window(), summary.0.state.lock());
                (observed.sum, observed.count, observed.quantiles(now))
            };
            for (quantile, value) in QUANTILES.into_iter().zip(values) {
                encoder.encode_family(&QuantileLabels { labels, quantile })?.encode_gauge(&value)?;
            }
            // Writes `_sum` and `_count`, as for a histogram without buckets.
            encoder.encode_family(labels)?.encode_histogram::<NoLabelSet>(sum, count, &[], None)?;
        }
        Ok(())
    }

    /// prometheus-client has no type for summaries; the registry writes it.
    fn metric_type(&self) -> MetricType {
        MetricType::Unknown
    }

    fn is_empty(&self) -> bool {
        self.series.read().is_empty()
    }
}

/// Labels of a series, and the quantile of a sample.
#[derive(Debug)]
struct QuantileLabels<'a, L> {
    labels: &'a L,
    quantile: f64,
}

impl<L: Labels> EncodeLabelSet for QuantileLabels<'_, L> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        self.labels.encode(encoder)?;
        [("quantile", self.quantile)].encode(encoder)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn quantiles_are_those_of_all_values_within_the_bound(
            values in prop::collection::vec((-22f64..6.9).prop_map(f64::exp2), 1..2_000)
        ) {
            let mut observed = SummaryState::default();
            values.iter().for_each(|value| observed.add(*value, 0));
            let mut sorted = values;
            sorted.sort_by(f64::total_cmp);
            for (quantile, found) in QUANTILES.into_iter().zip(observed.quantiles(0)) {
                let exact = sorted[(quantile * sorted.len() as f64).ceil() as usize - 1];
                prop_assert!((found - exact).abs() <= exact / 64.0, "{quantile}: {found} for {exact}");
            }
        }
    }

    #[test]
    fn values_out_of_range_count_as_the_limits() {
        for (value, expected) in [
            (0.0, 0),
            (-1.0, 0),
            (f64::NAN, 0),
            (f64::MIN_POSITIVE, 0),
            (MAX_VALUE, BUCKETS - 1),
            (f64::INFINITY, BUCKETS - 1),
        ] {
            assert_eq!(bucket(value), expected, "{value}");
        }
    }

    #[test]
    fn quantiles_exclude_old_values_and_the_sum_does_not() {
        let mut observed = SummaryState::default();
        observed.add(1.0, 0);
        observed.add(64.0, 3);
        assert!((observed.quantiles(4)[0] - 1.0).abs() < 0.02);
        assert!((observed.quantiles(5)[0] - 64.0).abs() <= 1.0);
        assert!(observed.quantiles(8)[0].is_nan());
        for window in 0..1_000 {
            observed.add(2.0, window);
        }
        assert_eq!((observed.sum, observed.count, observed.windows.len()), (2_065.0, 1_002, 5));
    }

    #[test]
    fn values_of_many_threads_all_count() {
        let summary = Summary::new(Duration::from_secs(3_600));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1_000).for_each(|_| summary.observe(0.5)));
            }
        });
        let observed = summary.0.state.lock();
        let windowed: u32 = observed.windows.iter().flat_map(|window| window.counts.iter()).sum();
        assert_eq!((observed.sum, observed.count, windowed), (2_000.0, 4_000, 4_000));
    }
}
