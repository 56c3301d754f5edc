//! Dispatcher: gives requests seats, lets them wait, or rejects them. Combines the queues with a clock and with waiting callers.
//!
//! The only module of this crate that reads the clock and waits. It spawns no tasks: the owner of a dispatcher runs
//! [`Dispatcher::rebalance`] and [`Dispatcher::release_due_seats`]. Does not depend on HTTP or gRPC responses.

mod seat;
mod shared;
mod waker;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portico_machinery::flow_control::{FlowSchema, PriorityLevel, StoredObjects};
use portico_machinery::{RequestInfo, UserInfo};
use tokio::sync::oneshot;

use crate::BORROWING_PERIOD;
use crate::controller::{FlowRules, MatchedSchema};
use crate::counts::FlowHistogram;
use crate::inflight::{RequestKind, RequestPhase};
use crate::level::{ArrivalOutcome, Level};
use crate::queue_set::{ClassifiedRequest, RejectReason};
use crate::watches::WatchGuard;
pub use seat::{Seat, WaitForSeat};
use shared::SharedState;
pub use waker::SeatWaker;

/// Time that a request waits for a seat.
///
/// Limit (Priority and fairness): 429.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// A request waits for a seat for at most its timeout divided by this number.
///
/// Limit (Priority and fairness): 429.
const WAIT_DIVISOR: u32 = 4;

/// Dispatcher of requests to seats. Cheap to clone.
#[derive(Clone)]
pub struct Dispatcher {
    shared: Arc<SharedState>,
    /// Timeout of a request without a deadline.
    request_timeout: Duration,
}

/// Request for a seat.
#[derive(Clone, Copy, Debug)]
pub struct FlowRequest<'a> {
    /// User of the request.
    pub user: &'a Arc<UserInfo>,
    /// Attributes of the request.
    pub info: &'a Arc<RequestInfo>,
    /// Raw query string.
    pub query: &'a str,
    /// Time of arrival.
    pub received: Instant,
    /// Time by which the response is due, if limited.
    pub deadline: Option<Instant>,
}

/// Decision about a request.
#[derive(Debug)]
pub enum SeatDecision {
    /// The request runs on this seat.
    Run(Seat),
    /// The request has to wait for a seat.
    Wait(WaitForSeat),
    /// The request is rejected; the client should retry after this number of seconds.
    Reject(u64),
}

impl Dispatcher {
    /// Returns a dispatcher for a server with this number of seats. `request_timeout` applies to requests without a deadline.
    /// `observe` is called with the number of running or waiting requests of a kind whenever the number increases.
    #[must_use]
    pub fn new(
        seats: usize,
        request_timeout: Duration,
        observe: impl Fn(RequestPhase, RequestKind, usize) + Send + Sync + 'static,
    ) -> Self {
        let seats = u32::try_from(seats).unwrap_or(u32::MAX);
        Self { shared: Arc::new(SharedState::new(seats, Box::new(observe))), request_timeout }
    }

    /// Applies the configuration objects and returns the rules that classify requests.
    #[must_use]
    pub fn apply_config(
        &self,
        schemas: &[Arc<FlowSchema>],
        levels: &[Arc<PriorityLevel>],
    ) -> FlowRules<SeatWaker> {
        let now = Instant::now();
        let rules = self.shared.controller.apply_config(schemas, levels, now);
        let [waiting, executing] = self.shared.controller.capacity();
        self.shared.inflight.set_capacity(RequestPhase::Waiting, waiting, now);
        self.shared.inflight.set_capacity(RequestPhase::Executing, executing, now);
        rules
    }

    /// Returns all levels, sorted by name.
    #[must_use]
    pub fn levels(&self) -> Vec<Arc<Level<SeatWaker>>> {
        self.shared.controller.levels()
    }

    /// Returns the fraction of their demand that levels got in the last assignment of seats.
    #[must_use]
    pub fn fair_fraction(&self) -> f64 {
        self.shared.controller.fair_fraction()
    }

    /// Returns the numbers of running or waiting requests, by kind.
    #[must_use]
    pub fn inflight(&self, phase: RequestPhase) -> [usize; 2] {
        self.shared.inflight.counts_by_kind(phase)
    }

    /// Returns the ratios of running or waiting requests to their maximum, over time.
    #[must_use]
    pub fn ratio(&self, phase: RequestPhase, kind: RequestKind) -> FlowHistogram {
        self.shared.inflight.histogram_at(phase, kind, Instant::now())
    }

    /// Requests a seat for a request that this schema matches.
    #[must_use]
    pub fn request_seat(&self, request: FlowRequest<'_>, matched: &MatchedSchema<SeatWaker>) -> SeatDecision {
        let work = self.shared.estimator.estimate(request.info, request.query, matched);
        let classified: ClassifiedRequest = matched.classified(request.user, request.info);
        let (level, now) = (&matched.level, Instant::now());
        let mut woken = None;
        let waker = || {
            let (waker, receiver) = SeatWaker::new();
            woken = Some(receiver);
            waker
        };
        let admission = level.arrive(classified, work, now, waker);
        let kind = RequestKind::from_request(request.info);
        let seat = |ticket| Seat::new(Arc::clone(&self.shared), Arc::clone(level), ticket, kind);
        match (admission, woken) {
            (ArrivalOutcome::Executing(ticket), _) => SeatDecision::Run(seat(ticket).into_executing()),
            (ArrivalOutcome::Waiting(ticket), Some(woken)) => {
                self.shared.notify_due(level.next_due());
                SeatDecision::Wait(self.wait_for_seat(seat(ticket), woken, request))
            }
            // A request without a waker cannot wait.
            (ArrivalOutcome::Waiting(ticket), None) => {
                SeatDecision::Reject(level.abandon(ticket, RejectReason::Cancelled, now))
            }
            (ArrivalOutcome::Rejected { retry_after, .. }, _) => SeatDecision::Reject(retry_after),
        }
    }

    /// Sets the numbers and sizes of stored objects, by `resource.group`, which estimates of lists use.
    pub fn set_stored(&self, stored: HashMap<String, StoredObjects>) {
        self.shared.estimator.set_stored(stored);
    }

    /// Counts a watch until the guard is dropped.
    #[must_use]
    pub fn register_watch(&self, info: &RequestInfo) -> WatchGuard {
        self.shared.estimator.watches.register(info)
    }

    /// Reassigns seats every period. Never returns.
    pub async fn rebalance(self) {
        let mut ticks = tokio::time::interval(BORROWING_PERIOD);
        loop {
            ticks.tick().await;
            self.shared.controller.rebalance(Instant::now());
        }
    }

    /// Releases lingering seats when they are due, if requests wait for them. Never returns.
    pub async fn release_due_seats(self) {
        loop {
            let due_notified = self.shared.due_notify.notified();
            match self.shared.controller.next_due() {
                Some(due) => {
                    // A notification means that another seat may be due earlier.
                    let _ = tokio::time::timeout_at(due.into(), due_notified).await;
                }
                None => due_notified.await,
            }
            self.shared.controller.advance(Instant::now());
        }
    }

    fn wait_for_seat(
        &self,
        seat: Seat,
        woken: oneshot::Receiver<()>,
        request: FlowRequest<'_>,
    ) -> WaitForSeat {
        let allotted = request.deadline.map(|deadline| deadline.saturating_duration_since(request.received));
        let part = allotted.unwrap_or(self.request_timeout) / WAIT_DIVISOR;
        WaitForSeat::new(seat, woken, request.received + part.min(MAX_WAIT))
    }
}

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dispatcher")
    }
}
