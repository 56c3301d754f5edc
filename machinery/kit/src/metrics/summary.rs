//! A summary: how much was observed, and quantiles of what was observed lately, as client_golang's `Summary` exposes them.
//!
//! Values are counted in buckets of equal relative width, so that a quantile is the value of exactly its rank, wrong by at most
//! 1/64 of itself (client_golang promises a rank instead). Values outside of [`LEAST`] and [`MOST`] count as these. Age is
//! cut into [`WINDOWS`] as client_golang cuts it. A series takes 4 KiB for each window that saw a value; observing holds a lock
//! for one addition.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, LabelSetEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::Labels;

/// component-base's `defObjectives`.
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];
/// client_golang's `DefAgeBuckets`.
const WINDOWS: u32 = 5;
/// Each power of two is cut into 2^5 buckets.
const BITS_OF_MANTISSA: u32 = 5;
const SHIFT: u32 = f64::MANTISSA_DIGITS - 1 - BITS_OF_MANTISSA;
/// 2^-23, about an eighth of a microsecond.
const LEAST: f64 = 1.0 / 8_388_608.0;
/// 2^7, about two minutes.
const MOST: f64 = 128.0;
const FIRST: u64 = LEAST.to_bits() >> SHIFT;
const BUCKETS: usize = ((MOST.to_bits() >> SHIFT) - FIRST) as usize + 1;

/// The summaries of a family, by label set. Clones share them.
#[derive(Clone, Debug)]
pub struct SummaryVec<L> {
    max_age: Duration,
    series: Arc<RwLock<HashMap<L, Summary>>>,
}

/// See the module. Clones share it.
#[derive(Clone, Debug)]
pub struct Summary(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    begun: Instant,
    /// How long a window is.
    period: Duration,
    observed: Mutex<Observed>,
}

#[derive(Debug, Default)]
struct Observed {
    sum: f64,
    count: u64,
    /// The youngest is last.
    windows: VecDeque<Window>,
}

#[derive(Debug)]
struct Window {
    /// Periods since the summary began.
    number: u64,
    counts: Box<[u32]>,
}

impl<L: Labels> SummaryVec<L> {
    pub(super) fn new(max_age: Duration) -> Self {
        Self { max_age, series: Arc::default() }
    }

    /// The summary of these labels, made when there is none.
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
        Self(Arc::new(Inner { begun: Instant::now(), period, observed: Mutex::default() }))
    }

    /// Counts a value.
    pub fn observe(&self, value: f64) {
        let now = self.window();
        self.0.observed.lock().add(value, now);
    }

    /// The number of the window that is now.
    fn window(&self) -> u64 {
        let periods = self.0.begun.elapsed().as_nanos() / self.0.period.as_nanos();
        u64::try_from(periods).unwrap_or(u64::MAX)
    }
}

impl Observed {
    fn add(&mut self, value: f64, now: u64) {
        self.sum += value;
        self.count += 1;
        // Who read the clock before another and came later adds to that one's window.
        if self.windows.back().is_none_or(|youngest| youngest.number < now) {
            self.open(now);
        }
        if let Some(count) = self.windows.back_mut().and_then(|window| window.counts.get_mut(bucket(value))) {
            *count = count.saturating_add(1);
        }
    }

    /// Opens a window, in the memory of the oldest where that is too old.
    fn open(&mut self, number: u64) {
        let oldest = self.windows.pop_front_if(|oldest| !oldest.counts_at(number));
        let mut counts = oldest.map_or_else(|| vec![0; BUCKETS].into_boxed_slice(), |oldest| oldest.counts);
        counts.fill(0);
        self.windows.retain(|window| window.counts_at(number));
        self.windows.push_back(Window { number, counts });
    }

    /// The quantiles of what is young enough; no numbers when there is nothing.
    fn quantiles(&self, now: u64) -> [f64; 3] {
        let mut counts = vec![0u64; BUCKETS];
        for window in self.windows.iter().filter(|window| window.counts_at(now)) {
            counts.iter_mut().zip(&window.counts).for_each(|(sum, count)| *sum += u64::from(*count));
        }
        let all: u64 = counts.iter().sum();
        QUANTILES.map(|quantile| {
            let rank = (quantile * all as f64).ceil() as u64;
            let mut below = 0;
            let found = counts.iter().position(|count| {
                below += count;
                *count > 0 && below >= rank
            });
            found.map_or(f64::NAN, middle)
        })
    }
}

impl Window {
    /// Whether it is young enough for the quantiles of a time.
    fn counts_at(&self, now: u64) -> bool {
        self.number.saturating_add(u64::from(WINDOWS)) > now
    }
}

/// The bucket of a value: its exponent and the first bits of its mantissa. What is no number is the least.
fn bucket(value: f64) -> usize {
    let within = if value > LEAST { value.min(MOST) } else { LEAST };
    ((within.to_bits() >> SHIFT) - FIRST) as usize
}

/// The value in the middle of a bucket.
fn middle(bucket: usize) -> f64 {
    f64::from_bits(((FIRST + bucket as u64) << SHIFT) | (1 << (SHIFT - 1)))
}

impl<L: Labels> EncodeMetric for SummaryVec<L> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (labels, summary) in self.series.read().iter() {
            let (sum, count, values) = {
                let (now, observed) = (summary.window(), summary.0.observed.lock());
                (observed.sum, observed.count, observed.quantiles(now))
            };
            for (quantile, value) in QUANTILES.into_iter().zip(values) {
                encoder.encode_family(&OfQuantile { labels, quantile })?.encode_gauge(&value)?;
            }
            // What a histogram without buckets writes: `_sum` and `_count`.
            encoder.encode_family(labels)?.encode_histogram::<NoLabelSet>(sum, count, &[], None)?;
        }
        Ok(())
    }

    /// prometheus-client knows no summaries: the registry writes their type.
    fn metric_type(&self) -> MetricType {
        MetricType::Unknown
    }

    fn is_empty(&self) -> bool {
        self.series.read().is_empty()
    }
}

/// The labels of a series, and which quantile a sample is.
#[derive(Debug)]
struct OfQuantile<'a, L> {
    labels: &'a L,
    quantile: f64,
}

impl<L: Labels> EncodeLabelSet for OfQuantile<'_, L> {
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
            let mut observed = Observed::default();
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
    fn what_is_no_duration_counts_at_the_ends() {
        for (value, expected) in [
            (0.0, 0),
            (-1.0, 0),
            (f64::NAN, 0),
            (f64::MIN_POSITIVE, 0),
            (MOST, BUCKETS - 1),
            (f64::INFINITY, BUCKETS - 1),
        ] {
            assert_eq!(bucket(value), expected, "{value}");
        }
    }

    #[test]
    fn quantiles_forget_what_is_too_old_and_the_sum_does_not() {
        let mut observed = Observed::default();
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
        let observed = summary.0.observed.lock();
        let windowed: u32 = observed.windows.iter().flat_map(|window| window.counts.iter()).sum();
        assert_eq!((observed.sum, observed.count, windowed), (2_000.0, 4_000, 4_000));
    }
}
