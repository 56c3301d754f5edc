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
pub(super) trait Working: Send + Sync {
    /// Returns the start time of each key that is being processed.
    fn in_work(&self) -> Vec<Instant>;
}

/// Queues by name, as long as they exist.
pub(super) type Queues = Arc<Mutex<Vec<(String, Weak<dyn Working>)>>>;

/// Gauge with a value in seconds for each queue name.
#[derive(Clone)]
pub(super) struct Unfinished {
    pub(super) queues: Queues,
    /// Aggregates the durations of the keys of one queue name.
    pub(super) figure: fn(&[f64]) -> f64,
}

impl Debug for Unfinished {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("Unfinished")
    }
}

impl EncodeMetric for Unfinished {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), Error> {
        let now = Instant::now();
        let mut queues = self.queues.lock();
        queues.retain(|(_, queue)| queue.strong_count() > 0);
        let mut taken: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (name, queue) in &*queues {
            let since = queue.upgrade().map(|queue| queue.in_work()).unwrap_or_default();
            taken.entry(name).or_default().extend(since.iter().map(|since| (now - *since).as_secs_f64()));
        }
        for (name, taken) in &taken {
            ConstGauge::new((self.figure)(taken)).encode(encoder.encode_family(&[("name", *name)])?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

/// Returns the sum.
pub(super) fn all(taken: &[f64]) -> f64 {
    taken.iter().sum()
}

/// Returns the maximum, or 0 if there are no durations.
pub(super) fn longest(taken: &[f64]) -> f64 {
    taken.iter().copied().fold(0.0, f64::max)
}
