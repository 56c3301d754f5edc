//! Request metrics of all resources together, and differences between two readings of them.

use super::DURATIONS;

/// Number of latency buckets; the last one has no upper bound.
pub(super) const BUCKETS: usize = DURATIONS.len() + 1;

/// Sums over all requests since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests by the first digit of their status code, starting with 1.
    pub(super) codes: [u64; 5],
    /// Requests by latency, without watches and connections.
    pub(super) latency: Latencies,
    /// Long-running requests in progress.
    pub long_running: i64,
}

/// Number of requests per latency bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies(pub(super) [u64; BUCKETS]);

impl Totals {
    /// Requests by code since an earlier reading.
    #[must_use]
    pub fn codes_since(&self, earlier: &Self) -> [u64; 5] {
        std::array::from_fn(|at| self.codes[at].saturating_sub(earlier.codes[at]))
    }

    /// Latencies since an earlier reading.
    #[must_use]
    pub fn latency_since(&self, earlier: &Self) -> Latencies {
        Latencies(std::array::from_fn(|at| self.latency.0[at].saturating_sub(earlier.latency.0[at])))
    }
}

impl Latencies {
    pub(super) fn add(&mut self, counts: impl Iterator<Item = u64>) {
        self.0.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }

    /// Latency in seconds that this share of the requests does not exceed, estimated as in Prometheus: linear within a bucket,
    /// and the last bound for the last bucket. `None` without requests.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "an estimate needs no exact counts")]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let all: u64 = self.0.iter().sum();
        if all == 0 {
            return None;
        }
        let rank = share * all as f64;
        let mut cumulative = 0.0;
        for (at, count) in self.0.iter().map(|count| *count as f64).enumerate() {
            let Some(upper) = DURATIONS.get(at) else { break };
            if count > 0.0 && cumulative + count >= rank {
                let lower = if at == 0 { 0.0 } else { DURATIONS[at - 1] };
                return Some(lower + (upper - lower) * (rank - cumulative) / count);
            }
            cumulative += count;
        }
        DURATIONS.last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(counts: &[(usize, u64)]) -> Latencies {
        let mut all = [0; BUCKETS];
        counts.iter().for_each(|(at, count)| all[*at] = *count);
        Latencies(all)
    }

    #[test]
    fn quantiles_lie_within_their_bucket() {
        assert_eq!(Latencies::default().quantile(0.5), None);
        assert_eq!(latencies(&[(0, 10)]).quantile(0.5), Some(0.0025));
        let mixed = latencies(&[(0, 90), (2, 10)]);
        assert_eq!(mixed.quantile(0.9), Some(0.005));
        assert!((mixed.quantile(0.95).unwrap() - 0.0375).abs() < 1e-9);
        assert_eq!(latencies(&[(BUCKETS - 1, 1)]).quantile(0.5), Some(60.0));
    }
}
