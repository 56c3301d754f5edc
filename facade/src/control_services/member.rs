//! One of the control services: its transport, state, distance, and known revision.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use portico_proto::config::config_client::ConfigClient;
use portico_proto::config::{PingRequest, PingResponse};
use portico_proto::convert::Version;
use tokio::sync::Notify;

use super::failures::lost_status;
use crate::transport::ControlTransport;

/// Timeout of a ping that waits for a revision; longer than the control service itself waits.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(3);

/// Round trips by which the distance to a control service is measured.
///
/// Limit (Facades and control services): the oldest one is removed.
const MAX_ROUND_TRIPS: usize = 64;

/// The state of a control service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberState {
    /// No response yet.
    Unknown,
    /// Ready to be used.
    Serving,
    /// Responds, but is not ready or cannot read its database.
    NotReady,
    /// About to stop.
    Draining,
    /// Serves another store.
    OtherStore,
    /// Does not respond.
    Lost,
}

impl MemberState {
    /// True if it responds to calls.
    pub(crate) fn responds(self) -> bool {
        matches!(self, Self::Serving | Self::NotReady | Self::Draining)
    }

    /// Name of the state for logs and the health check.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Serving => "serving",
            Self::NotReady => "not ready",
            Self::Draining => "draining",
            Self::OtherStore => "of another store",
            Self::Lost => "lost",
        }
    }
}

/// One of the control services.
pub(crate) struct Member {
    /// Position in the configured order.
    pub(crate) index: usize,
    /// Address, for logs and metrics.
    pub(crate) name: String,
    /// Connections to it.
    pub(crate) transport: ControlTransport,
    /// Revision that its reads are known to show.
    known_revision: AtomicI64,
    start: Instant,
    /// Microseconds plus one after `start` of its last response; 0 if it never responded.
    last_answer: AtomicU64,
    /// Notified when a call has failed.
    suspected: Notify,
    /// Latest round trip times, oldest first.
    round_trips: Mutex<VecDeque<Duration>>,
}

impl Member {
    pub(super) fn new(index: usize, name: String, transport: ControlTransport) -> Self {
        Self {
            index,
            name,
            transport,
            known_revision: AtomicI64::new(0),
            start: Instant::now(),
            last_answer: AtomicU64::new(0),
            suspected: Notify::new(),
            round_trips: Mutex::default(),
        }
    }

    /// Revision that its reads are known to show.
    pub(super) fn known_revision(&self) -> i64 {
        self.known_revision.load(Ordering::Acquire)
    }

    pub(super) fn record_revision(&self, revision: i64) {
        self.known_revision.fetch_max(revision, Ordering::AcqRel);
    }

    pub(super) fn reset_revision(&self) {
        self.known_revision.store(0, Ordering::Release);
    }

    /// Records a response to a call, or a message on the configuration stream.
    pub(crate) fn record_answer(&self) {
        let now = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.last_answer.store(now.saturating_add(1), Ordering::Release);
    }

    /// Time since its last response; `None` if it never responded.
    pub(crate) fn silence(&self) -> Option<Duration> {
        let last_answer = self.last_answer.load(Ordering::Acquire).checked_sub(1)?;
        Some(self.start.elapsed().saturating_sub(Duration::from_micros(last_answer)))
    }

    /// Records the round trip of a ping and returns the shortest of the recent ones.
    pub(super) fn record_round_trip(&self, took: Duration) -> Duration {
        let mut trips = self.round_trips.lock();
        if trips.len() == MAX_ROUND_TRIPS {
            trips.pop_front();
        }
        trips.push_back(took);
        trips.iter().min().copied().unwrap_or(took)
    }

    /// Shortest of the recent round trips; `None` if there is none.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.round_trips.lock().iter().min().copied()
    }

    /// Records that a call has failed, so that the watchdog checks the control service at once.
    pub(crate) fn suspect(&self) {
        self.suspected.notify_one();
    }

    /// Waits until a call has failed.
    pub(super) async fn wait_until_suspected(&self) {
        self.suspected.notified().await;
    }

    /// Pings the control service.
    pub(super) async fn probe(&self) -> Result<PingResponse, tonic::Status> {
        self.send_ping(0).await
    }

    /// Waits, within a timeout, until its reads show this revision. Returns its version.
    pub(super) async fn wait_for_revision(&self, at_least: i64) -> Result<Option<Version>, tonic::Status> {
        let answer = tokio::time::timeout(CATCH_UP_TIMEOUT, self.send_ping(at_least)).await;
        let timed_out = |_| lost_status("the control service does not answer");
        Ok(answer.map_err(timed_out)??.version.map(Version::from))
    }

    async fn send_ping(&self, at_least: i64) -> Result<PingResponse, tonic::Status> {
        let mut client = ConfigClient::new(self.transport.config.clone());
        let answer = client.ping(self.transport.request(PingRequest { at_least })).await?;
        self.record_answer();
        Ok(answer.into_inner())
    }
}
