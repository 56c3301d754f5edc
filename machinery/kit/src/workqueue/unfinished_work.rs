//! Durations of the work in progress in all queues of a process, computed at each scrape.

use std::collections::BTreeMap;
use std::fmt::{Debug, Error, Formatter};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use tokio::time::Instant;

/// Queue with work in progress.
pub(super) trait ProcessingQueue: Send + Sync {
    /// Returns the start time of each key that is being processed.
    fn start_times(&self) -> Vec<Instant>;
}

/// Queues by name, as long as they exist.
pub(super) type Queues = Arc<Mutex<Vec<(String, Weak<dyn ProcessingQueue>)>>>;

/// Gauge with a value in seconds for each queue name.
#[derive(Clone)]
pub(super) struct UnfinishedWorkGauge {
    pub(super) queues: Queues,
    /// Aggregates the durations of the keys of one queue name.
    pub(super) aggregate: fn(&[f64]) -> f64,
}

impl Debug for UnfinishedWorkGauge {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("Unfinished")
    }
}

impl EncodeMetric for UnfinishedWorkGauge {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), Error> {
        let now = Instant::now();
        let mut queues = self.queues.lock();
        queues.retain(|(_, queue)| queue.strong_count() > 0);
        let mut durations: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (name, queue) in &*queues {
            let since = queue.upgrade().map(|queue| queue.start_times()).unwrap_or_default();
            durations.entry(name).or_default().extend(since.iter().map(|since| (now - *since).as_secs_f64()));
        }
        for (name, durations) in &durations {
            ConstGauge::new((self.aggregate)(durations))
                .encode(encoder.encode_family(&[("name", *name)])?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

/// Returns the sum.
pub(super) fn sum(durations: &[f64]) -> f64 {
    durations.iter().sum()
}

/// Returns the maximum, or 0 if there are no durations.
pub(super) fn longest(durations: &[f64]) -> f64 {
    durations.iter().copied().fold(0.0, f64::max)
}
