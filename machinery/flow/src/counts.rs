//! Counters of one flow schema in one level, exposed as upstream's `apiserver_flowcontrol_*` metrics.

use std::time::Duration;

/// Bucket bounds of durations, in seconds.
pub const DURATION_BUCKETS: &[f64] =
    &[0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
/// Bucket bounds of queue lengths.
pub const LENGTH_BUCKETS: &[f64] = &[0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];
/// Bucket bounds of estimated seats.
pub const SEAT_BUCKETS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0];
/// Bucket bounds of numbers of watches.
pub const WATCH_BUCKETS: &[f64] = &[0.0, 1.0, 10.0, 100.0, 1000.0, 10_000.0];

/// Histogram with fixed buckets.
#[derive(Clone, Debug)]
pub struct FlowHistogram {
    /// Upper bounds of the buckets, ascending, without infinity.
    pub bounds: &'static [f64],
    /// Number of values in each bucket; the last one has no upper bound.
    pub counts: Vec<u64>,
    /// Sum of all values.
    pub sum: f64,
}

impl FlowHistogram {
    pub(crate) fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    pub(crate) fn observe(&mut self, value: f64) {
        self.observe_weighted(value, 1);
    }

    pub(crate) fn observe_weighted(&mut self, value: f64, weight: u64) {
        let bucket = self.bounds.iter().position(|bound| value <= *bound).unwrap_or(self.bounds.len());
        self.counts[bucket] += weight;
        self.sum += value * weight as f64;
    }

    pub(crate) fn observe_time(&mut self, time: Duration) {
        self.observe(time.as_secs_f64());
    }

    /// True if there are no observations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }
}

/// Counters of one flow schema.
#[derive(Clone, Debug)]
pub struct SchemaCounts {
    /// Name of the schema.
    pub schema: String,
    /// Number of requests that were served.
    pub dispatched: u64,
    /// Number of rejected requests, by reason ([`crate::RejectReason::ALL`]).
    pub rejected: [u64; 4],
    /// Number of times at which the next request did not find enough seats.
    pub no_accommodation: u64,
    /// Number of running requests.
    pub executing: u32,
    /// Seats in use by running requests and by lingering seats after them.
    pub executing_seats: u32,
    /// Number of waiting requests.
    pub waiting: u32,
    /// Seats that waiting requests need.
    pub waiting_seats: u32,
    /// Waiting times of requests that were served.
    pub wait_served: FlowHistogram,
    /// Waiting times of requests that were rejected.
    pub wait_rejected: FlowHistogram,
    /// Execution times of requests, except watches.
    pub execution: FlowHistogram,
    /// Initialization times of watches.
    pub watch_execution: FlowHistogram,
    /// Queue lengths, each including the request that joined the queue.
    pub queue_length: FlowHistogram,
    /// Estimated seats of requests.
    pub seats: FlowHistogram,
    /// Numbers of watches that receive the event of a write.
    pub watches: FlowHistogram,
}

impl SchemaCounts {
    pub(crate) fn new(schema: &str) -> Self {
        Self {
            schema: schema.to_owned(),
            dispatched: 0,
            rejected: [0; 4],
            no_accommodation: 0,
            executing: 0,
            executing_seats: 0,
            waiting: 0,
            waiting_seats: 0,
            wait_served: FlowHistogram::new(DURATION_BUCKETS),
            wait_rejected: FlowHistogram::new(DURATION_BUCKETS),
            execution: FlowHistogram::new(DURATION_BUCKETS),
            watch_execution: FlowHistogram::new(DURATION_BUCKETS),
            queue_length: FlowHistogram::new(LENGTH_BUCKETS),
            seats: FlowHistogram::new(SEAT_BUCKETS),
            watches: FlowHistogram::new(WATCH_BUCKETS),
        }
    }
}
