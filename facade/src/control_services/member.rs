//! One of the control services: the way to it, how it is, how near, and how far it has come.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use portico_proto::config::config_client::ConfigClient;
use portico_proto::config::{PingRequest, PingResponse};
use portico_proto::convert::Version;
use tokio::sync::Notify;

use super::failures::lost;
use crate::transport::ControlTransport;

/// How long a ping that waits for a revision may take: longer than the other side waits.
const CATCH_UP: Duration = Duration::from_secs(3);

/// Round trips by which the distance to a control service is measured.
///
/// Limit (Facades and control services): the oldest one is removed.
const TRIPS: usize = 64;

/// The state of a control service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It has not answered yet.
    Unknown,
    /// It is to be used.
    Serving,
    /// It answers, and is not ready or cannot read its database.
    NotReady,
    /// It is about to stop.
    Draining,
    /// It serves another store.
    Foreign,
    /// It does not answer.
    Lost,
}

impl State {
    /// Whether it answers what it is asked.
    pub(crate) fn answers(self) -> bool {
        matches!(self, Self::Serving | Self::NotReady | Self::Draining)
    }

    /// As people read it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Serving => "serving",
            Self::NotReady => "not ready",
            Self::Draining => "draining",
            Self::Foreign => "of another store",
            Self::Lost => "lost",
        }
    }
}

/// See the module.
pub(crate) struct Member {
    /// Its place in the order.
    pub(crate) index: usize,
    /// Its address, for people.
    pub(crate) name: String,
    /// The way to it.
    pub(crate) transport: ControlTransport,
    /// Reads of it show at least this revision.
    reached: AtomicI64,
    begin: Instant,
    /// Microseconds plus one after `begin` at which it last answered; 0 for never.
    last_answer: AtomicU64,
    /// Somebody's call has failed.
    suspected: Notify,
    /// How long the last signs of life took, in the order in which they came.
    trips: Mutex<VecDeque<Duration>>,
}

impl Member {
    pub(super) fn new(index: usize, name: String, transport: ControlTransport) -> Self {
        Self {
            index,
            name,
            transport,
            reached: AtomicI64::new(0),
            begin: Instant::now(),
            last_answer: AtomicU64::new(0),
            suspected: Notify::new(),
            trips: Mutex::default(),
        }
    }

    /// How far it is known to have come.
    pub(super) fn reached(&self) -> i64 {
        self.reached.load(Ordering::Acquire)
    }

    pub(super) fn has_reached(&self, revision: i64) {
        self.reached.fetch_max(revision, Ordering::AcqRel);
    }

    pub(super) fn forget_revision(&self) {
        self.reached.store(0, Ordering::Release);
    }

    /// Records that the member has answered a call, or sent a message on the configuration stream.
    pub(crate) fn record_answer(&self) {
        let now = u64::try_from(self.begin.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.last_answer.store(now.saturating_add(1), Ordering::Release);
    }

    /// How long it has not answered; nothing when it never has.
    pub(crate) fn silence(&self) -> Option<Duration> {
        let last_answer = self.last_answer.load(Ordering::Acquire).checked_sub(1)?;
        Some(self.begin.elapsed().saturating_sub(Duration::from_micros(last_answer)))
    }

    /// A sign of life took so long; the least that one took of late.
    pub(super) fn answered_in(&self, took: Duration) -> Duration {
        let mut trips = self.trips.lock();
        if trips.len() == TRIPS {
            trips.pop_front();
        }
        trips.push_back(took);
        trips.iter().min().copied().unwrap_or(took)
    }

    /// The least that a sign of life took of late; nothing when there was none.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.trips.lock().iter().min().copied()
    }

    /// A call has failed: it is looked after at once.
    pub(crate) fn suspect(&self) {
        self.suspected.notify_one();
    }

    /// Waits until a call has failed.
    pub(super) async fn suspected(&self) {
        self.suspected.notified().await;
    }

    /// Asks for a sign of life.
    pub(super) async fn sign_of_life(&self) -> Result<PingResponse, tonic::Status> {
        self.asked(0).await
    }

    /// Waits a moment until its reads show this revision; says how far it is.
    pub(super) async fn ping(&self, at_least: i64) -> Result<Option<Version>, tonic::Status> {
        let answer = tokio::time::timeout(CATCH_UP, self.asked(at_least)).await;
        let late = |_| lost("the control service does not answer");
        Ok(answer.map_err(late)??.version.map(Version::from))
    }

    async fn asked(&self, at_least: i64) -> Result<PingResponse, tonic::Status> {
        let mut client = ConfigClient::new(self.transport.config.clone());
        let answer = client.ping(self.transport.request(PingRequest { at_least })).await?;
        self.record_answer();
        Ok(answer.into_inner())
    }
}
