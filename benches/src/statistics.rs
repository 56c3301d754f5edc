//! Percentiles and medians, independent of their use.

use std::time::Duration;

/// Latencies, sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies(Vec<u64>);

impl Latencies {
    /// Creates latencies from nanoseconds in any order.
    pub(crate) fn new(mut nanos: Vec<u64>) -> Self {
        nanos.sort_unstable();
        Self(nanos)
    }

    /// Number of latencies.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the latency that `share` (0 to 1) of all do not exceed, in microseconds; 0 if there are none.
    pub(crate) fn micros(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index between 0 and last"
        )]
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 latencies")]
        let at = (last as f64 * share).round() as usize;
        self.0.get(at).map_or(0.0, |nanos| Duration::from_nanos(*nanos).as_secs_f64() * 1e6)
    }
}

/// Returns the median; the lower one for an even number, 0 for an empty slice.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

/// Returns the median of a value of each round.
pub(crate) fn median_of<T>(rounds: &[T], take: impl Fn(&T) -> f64) -> f64 {
    median(&rounds.iter().map(take).collect::<Vec<_>>())
}

/// Returns the median of the ratios within each round: a disturbance affects both measurements of its round.
pub(crate) fn median_ratio<T>(numerator: &[T], denominator: &[T], take: impl Fn(&T) -> f64) -> f64 {
    median(
        &numerator
            .iter()
            .zip(denominator)
            .map(|(numerator, denominator)| take(numerator) / take(denominator))
            .collect::<Vec<_>>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_latencies_at_that_share() {
        let latencies = Latencies::new((1..=101).rev().map(|micros| micros * 1000).collect());
        assert_eq!(latencies.count(), 101);
        for (share, micros) in [(0.0, 1.0), (0.5, 51.0), (0.99, 100.0), (1.0, 101.0)] {
            assert!((latencies.micros(share) - micros).abs() < 1e-6, "{share}");
        }
        assert!(Latencies::default().micros(0.5).abs() < 1e-9);
    }

    #[test]
    fn the_median_of_an_even_number_is_the_lower_one() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.0).abs() < 1e-9);
        assert!(median(&[]).abs() < 1e-9);
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        let ratio = median_ratio(&[10.0, 1.0, 12.0], &[20.0, 2.0, 12.0], |value| *value);
        assert!((ratio - 0.5).abs() < 1e-9);
    }
}
