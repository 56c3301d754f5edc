//! Measurements of this facade during the last hour: one line every ten seconds for the plots of the console; and a short report
//! for the control service, with failing checks and certificates.
//!
//! Samples are read from existing counters, so that requests have no additional cost.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use portico_flow::{Dispatcher, Phase};
use portico_kit::health::{Endpoint, Health, HealthQuery};
use portico_kit::metrics::resident_bytes;
use portico_kit::pki::CertInfo;
use portico_kit::recent::Recent;
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

use crate::in_flight::InFlight;
use crate::metrics::{RequestMetrics, Totals};

/// Interval between two samples of the last hour.
///
/// Limit (Console): a sample is taken.
const PERIOD: Duration = Duration::from_secs(10);
/// Samples of the last hour.
///
/// Limit (Console): the oldest one is removed.
const SAMPLES: usize = 360;
/// Size of the samples of the last hour.
///
/// Limit (Console, bytes): the oldest ones are removed.
const MAX_BYTES: usize = 128 << 10;

/// One sample. Counts of requests include those that ended since the previous sample.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sample {
    /// Unix seconds.
    time: i64,
    /// Seconds since the previous sample.
    seconds: f64,
    /// Requests that ended, by the first digit of their status code, starting with 1.
    codes: [u64; 5],
    /// Median latency in seconds without watches; `None` without requests.
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
    /// Requests in flight: reads, and others.
    in_flight: [usize; 2],
    /// Requests that wait for a seat.
    waiting: usize,
    /// Watches and other long-running requests.
    long_running: i64,
    /// Resident memory of the process in bytes; `None` if the system does not report it.
    memory: Option<u64>,
}

/// Summary of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Unix seconds.
    pub time: i64,
    /// Seconds since the previous sample.
    pub seconds: f64,
    /// Requests that ended.
    pub requests: u64,
    /// Requests that ended with 5xx.
    pub errors: u64,
    /// Requests in flight.
    pub in_flight: usize,
    /// Resident memory in bytes; `None` if the system does not report it.
    pub memory: Option<u64>,
}

impl From<&Sample> for Load {
    fn from(sample: &Sample) -> Self {
        Self {
            time: sample.time,
            seconds: sample.seconds,
            requests: sample.codes.iter().sum(),
            errors: sample.codes[4],
            in_flight: sample.in_flight.iter().sum(),
            memory: sample.memory,
        }
    }
}

/// State of this facade for the control service.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Oldest first.
    pub loads: Vec<Load>,
    /// Checks that fail.
    pub failing: Vec<String>,
    /// Certificates, with their use.
    pub certificates: Vec<(&'static str, CertInfo)>,
}

/// Function that returns the current certificates.
pub type Certificates = Box<dyn Fn() -> Vec<(&'static str, CertInfo)> + Send + Sync>;

/// Takes and stores the samples.
pub struct LastHour {
    /// Stored samples.
    pub samples: Arc<Recent>,
    kept: Mutex<Kept>,
    metrics: Arc<RequestMetrics>,
    in_flight: InFlight,
    /// Set if requests queue; it replaces `in_flight` then.
    flow: Option<Dispatcher>,
    health: Health,
}

#[derive(Default)]
struct Kept {
    loads: VecDeque<Load>,
    /// `None` before the first check.
    now: Option<Report>,
}

impl LastHour {
    /// Starts without samples.
    #[must_use]
    pub fn new(
        metrics: Arc<RequestMetrics>,
        in_flight: InFlight,
        flow: Option<Dispatcher>,
        health: Health,
    ) -> Self {
        let samples = Arc::new(Recent::new(SAMPLES, MAX_BYTES));
        Self { samples, kept: Mutex::default(), metrics, in_flight, flow, health }
    }

    /// Returns the state with the loads after `time`; `None` if there are no newer loads, or no state yet.
    #[must_use]
    pub fn report_since(&self, time: Option<i64>) -> Option<Report> {
        let kept = self.kept.lock();
        let now = kept.now.as_ref()?;
        let news = kept.loads.iter().filter(|load| time.is_none_or(|time| load.time > time));
        let loads: Vec<_> = news.copied().collect();
        (time.is_none() || !loads.is_empty()).then(|| Report { loads, ..now.clone() })
    }

    /// Takes samples until canceled.
    pub async fn sample(self: Arc<Self>, certificates: Certificates) {
        let (mut ticks, mut before) = (interval(PERIOD), Totals::default());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = ticks.tick().await;
        self.look(&certificates).await;
        loop {
            let now = ticks.tick().await;
            let totals = self.metrics.totals();
            let sample = self.since(&before, &totals, (now - last).as_secs_f64());
            (before, last) = (totals, now);
            match serde_json::to_vec(&sample) {
                Ok(line) => self.samples.push(Bytes::from(line)),
                Err(error) => tracing::error!(%error, "cannot encode a sample of metrics"),
            }
            self.look(&certificates).await;
            self.keep(Load::from(&sample));
        }
    }

    /// Updates the failing checks and the certificates of the report.
    async fn look(&self, certificates: &Certificates) {
        let checked = self.health.run(Endpoint::Readyz, &HealthQuery::default()).await;
        let failing = checked.results.into_iter().filter(|check| check.failure.is_some());
        let failing = failing.map(|check| check.name).collect();
        let now = Report { loads: Vec::new(), failing, certificates: certificates() };
        self.kept.lock().now = Some(now);
    }

    fn keep(&self, load: Load) {
        let mut kept = self.kept.lock();
        if kept.loads.len() == SAMPLES {
            kept.loads.pop_front();
        }
        kept.loads.push_back(load);
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
