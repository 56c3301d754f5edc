//! What is counted of one flow schema in one level: what upstream's `apiserver_flowcontrol_*` metrics show.

use std::time::Duration;

/// Bounds of durations, in seconds.
pub const DURATION_BUCKETS: &[f64] =
    &[0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
/// Bounds of lengths of queues.
pub const LENGTH_BUCKETS: &[f64] = &[0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];
/// Bounds of estimated seats.
pub const SEAT_BUCKETS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0];
/// Bounds of numbers of watches.
pub const WATCH_BUCKETS: &[f64] = &[0.0, 1.0, 10.0, 100.0, 1000.0, 10_000.0];

/// Values by size.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Upper bounds, ascending, without infinity.
    pub bounds: &'static [f64],
    /// How many values fell into each bucket; the last has no bound.
    pub counts: Vec<u64>,
    /// The sum of all values.
    pub sum: f64,
}

impl Histogram {
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

    /// Whether nothing was observed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Counts {
    /// The schema.
    pub schema: String,
    /// Requests that were served.
    pub dispatched: u64,
    /// Requests that were rejected, by reason ([`crate::Reason::ALL`]).
    pub rejected: [u64; 4],
    /// How often the next request found too few seats.
    pub no_accommodation: u64,
    /// Requests that run.
    pub executing: u32,
    /// Seats that are taken, for requests that run and after them.
    pub executing_seats: u32,
    /// Requests that wait.
    pub waiting: u32,
    /// Seats that they want.
    pub waiting_seats: u32,
    /// How long requests waited that were then served.
    pub wait_served: Histogram,
    /// How long requests waited that were not.
    pub wait_rejected: Histogram,
    /// How long requests ran.
    pub execution: Histogram,
    /// How long watches took to begin.
    pub watch_execution: Histogram,
    /// How long the queue was, with the request that joined it.
    pub queue_length: Histogram,
    /// Seats that requests were estimated to need.
    pub seats: Histogram,
    /// Watches that would see a write.
    pub watches: Histogram,
}

impl Counts {
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
            wait_served: Histogram::new(DURATION_BUCKETS),
            wait_rejected: Histogram::new(DURATION_BUCKETS),
            execution: Histogram::new(DURATION_BUCKETS),
            watch_execution: Histogram::new(DURATION_BUCKETS),
            queue_length: Histogram::new(LENGTH_BUCKETS),
            seats: Histogram::new(SEAT_BUCKETS),
            watches: Histogram::new(WATCH_BUCKETS),
        }
    }
}
