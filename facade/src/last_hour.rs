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
use portico_flow::{Dispatcher, RequestPhase};
use portico_kit::health::{Health, HealthEndpoint, HealthQuery};
use portico_kit::metrics::resident_bytes;
use portico_kit::pki::CertInfo;
use portico_kit::recent_lines::RecentLines;
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

use crate::in_flight::InFlight;
use crate::metrics::{RequestMetrics, Totals};

/// Interval between two samples of the last hour.
///
/// Limit (Console): a sample is taken.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(10);
/// Samples of the last hour.
///
/// Limit (Console): the oldest one is removed.
const MAX_SAMPLES: usize = 360;
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
pub struct LoadSample {
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

impl From<&Sample> for LoadSample {
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
pub struct FacadeReport {
    /// Oldest first.
    pub loads: Vec<LoadSample>,
    /// Checks that fail.
    pub failing: Vec<String>,
    /// Certificates, with their use.
    pub certificates: Vec<(&'static str, CertInfo)>,
}

/// Function that returns the current certificates.
pub type CertificateSource = Box<dyn Fn() -> Vec<(&'static str, CertInfo)> + Send + Sync>;

/// Takes and stores the samples.
pub struct LastHour {
    /// Stored samples.
    pub samples: Arc<RecentLines>,
    state: Mutex<ReportState>,
    metrics: Arc<RequestMetrics>,
    in_flight: InFlight,
    /// Set if requests queue; it replaces `in_flight` then.
    flow: Option<Dispatcher>,
    health: Health,
}

#[derive(Default)]
struct ReportState {
    loads: VecDeque<LoadSample>,
    /// `None` before the first check.
    latest: Option<FacadeReport>,
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
        let samples = Arc::new(RecentLines::new(MAX_SAMPLES, MAX_BYTES));
        Self { samples, state: Mutex::default(), metrics, in_flight, flow, health }
    }

    /// Returns the state with the loads after `time`; `None` if there are no newer loads, or no state yet.
    #[must_use]
    pub fn report_since(&self, time: Option<i64>) -> Option<FacadeReport> {
        let state = self.state.lock();
        let latest = state.latest.as_ref()?;
        let newer_loads = state.loads.iter().filter(|load| time.is_none_or(|time| load.time > time));
        let loads: Vec<_> = newer_loads.copied().collect();
        (time.is_none() || !loads.is_empty()).then(|| FacadeReport { loads, ..latest.clone() })
    }

    /// Takes samples until canceled.
    pub async fn sample(self: Arc<Self>, certificates: CertificateSource) {
        let (mut ticks, mut previous_totals) = (interval(SAMPLE_INTERVAL), Totals::default());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = ticks.tick().await;
        self.update_report(&certificates).await;
        loop {
            let tick = ticks.tick().await;
            let totals = self.metrics.totals();
            let sample = self.sample_since(&previous_totals, &totals, (tick - last).as_secs_f64());
            (previous_totals, last) = (totals, tick);
            match serde_json::to_vec(&sample) {
                Ok(line) => self.samples.push(Bytes::from(line)),
                Err(error) => tracing::error!(%error, "cannot encode a sample of metrics"),
            }
            self.update_report(&certificates).await;
            self.add_load(LoadSample::from(&sample));
        }
    }

    /// Updates the failing checks and the certificates of the report.
    async fn update_report(&self, certificates: &CertificateSource) {
        let checked = self.health.run(HealthEndpoint::Readyz, &HealthQuery::default()).await;
        let failing = checked.results.into_iter().filter(|check| check.failure.is_some());
        let failing = failing.map(|check| check.name).collect();
        let report = FacadeReport { loads: Vec::new(), failing, certificates: certificates() };
        self.state.lock().latest = Some(report);
    }

    fn add_load(&self, load: LoadSample) {
        let mut state = self.state.lock();
        if state.loads.len() == MAX_SAMPLES {
            state.loads.pop_front();
        }
        state.loads.push_back(load);
    }

    fn sample_since(&self, previous: &Totals, current: &Totals, seconds: f64) -> Sample {
        let latency = current.latency_since(previous);
        let (in_flight, waiting) = match &self.flow {
            Some(flow) => (flow.inflight(RequestPhase::Executing), flow.inflight(RequestPhase::Waiting)),
            None => (self.in_flight.counts(), [0, 0]),
        };
        Sample {
            time: Timestamp::now().as_second(),
            seconds,
            codes: current.codes_since(previous),
            p50: latency.quantile(0.5),
            p90: latency.quantile(0.9),
            p99: latency.quantile(0.99),
            in_flight,
            waiting: waiting.iter().sum(),
            long_running: current.long_running,
            memory: resident_bytes(),
        }
    }
}
