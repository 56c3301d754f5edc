//! What this facade measured during the last hour, one line every ten seconds, for the console's plots.
//!
//! A sample is read off counters that are there anyway, so that requests pay nothing for it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use portico_flow::{Dispatcher, Phase};
use portico_kit::metrics::resident_bytes;
use portico_kit::recent::Recent;
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

use crate::in_flight::InFlight;
use crate::metrics::{RequestMetrics, Totals};

/// How often a sample is taken.
const PERIOD: Duration = Duration::from_secs(10);
/// How many are kept: an hour.
const SAMPLES: usize = 360;
/// What they weigh together at most.
const MAX_BYTES: usize = 128 << 10;

/// What one sample says: of requests, those that ended since the sample before.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sample {
    /// Unix seconds.
    time: i64,
    /// How many seconds it is about.
    seconds: f64,
    /// Requests that ended, by the first digit of their answers' codes, from 1 on.
    codes: [u64; 5],
    /// Latency in seconds that half of the requests did not exceed, watches left out; nothing where there were none.
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
    /// Requests being answered: reads, and others.
    in_flight: [usize; 2],
    /// Requests that wait for a seat.
    waiting: usize,
    /// Watches and other requests that go on until somebody ends them.
    long_running: i64,
    /// Resident bytes of the process; nothing where the system does not say.
    memory: Option<u64>,
}

/// Takes the samples.
pub struct LastHour {
    /// What was taken.
    pub samples: Arc<Recent>,
    metrics: Arc<RequestMetrics>,
    in_flight: InFlight,
    /// In its place, where requests are queued.
    flow: Option<Dispatcher>,
}

impl LastHour {
    /// Nothing was taken yet.
    #[must_use]
    pub fn new(metrics: Arc<RequestMetrics>, in_flight: InFlight, flow: Option<Dispatcher>) -> Self {
        Self { samples: Arc::new(Recent::new(SAMPLES, MAX_BYTES)), metrics, in_flight, flow }
    }

    /// Takes them, for as long as it is polled.
    pub async fn sample(self) {
        let (mut ticks, mut before) = (interval(PERIOD), Totals::default());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = ticks.tick().await;
        loop {
            let now = ticks.tick().await;
            let totals = self.metrics.totals();
            let sample = self.since(&before, &totals, (now - last).as_secs_f64());
            (before, last) = (totals, now);
            match serde_json::to_vec(&sample) {
                Ok(line) => self.samples.push(Bytes::from(line)),
                Err(error) => tracing::error!(%error, "a sample cannot be written"),
            }
        }
    }

    fn since(&self, before: &Totals, now: &Totals, seconds: f64) -> Sample {
        let latency = now.latency_since(before);
        let (in_flight, waiting) = match &self.flow {
            Some(flow) => (flow.now(Phase::Executing), flow.now(Phase::Waiting)),
            None => (self.in_flight.now(), [0, 0]),
        };
        Sample {
            time: Timestamp::now().as_second(),
            seconds,
            codes: now.codes_since(before),
            p50: latency.quantile(0.5),
            p90: latency.quantile(0.9),
            p99: latency.quantile(0.99),
            in_flight,
            waiting: waiting.iter().sum(),
            long_running: now.long_running,
            memory: resident_bytes(),
        }
    }
}
