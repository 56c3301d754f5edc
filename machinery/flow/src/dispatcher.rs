//! Lets requests run on seats, wait for one, or be rejected: the queues with a clock and with callers that wait.
//!
//! The only module of this crate that reads the clock and waits. It spawns nothing: whoever owns a dispatcher runs
//! [`Dispatcher::rebalance`] and [`Dispatcher::give_back`]. It must not know HTTP's answers, nor gRPC's.

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
use crate::controller::{Matched, Rules};
use crate::counts::Histogram;
use crate::current::{Kind, Phase};
use crate::level::{Admission, Level};
use crate::queue_set::{About, Reason};
use crate::watches::WatchGuard;
pub use seat::{Seat, WaitForSeat};
use shared::Shared;
pub use waker::Waker;

/// Time that a request waits for a seat.
///
/// Limit (Priority and fairness): 429.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// A request waits for a seat for at most its timeout divided by this number.
///
/// Limit (Priority and fairness): 429.
const WAITING_PART: u32 = 4;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct Dispatcher {
    shared: Arc<Shared>,
    /// The time of a request that has no deadline.
    request_timeout: Duration,
}

/// A request that wants to run.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Who.
    pub user: &'a Arc<UserInfo>,
    /// What.
    pub info: &'a Arc<RequestInfo>,
    /// The raw query.
    pub query: &'a str,
    /// When it came.
    pub received: Instant,
    /// When it must have been answered.
    pub deadline: Option<Instant>,
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Decision {
    /// It runs.
    Run(Seat),
    /// It runs once it has a seat.
    Wait(WaitForSeat),
    /// It is rejected, and should come again after so many seconds.
    Reject(u64),
}

impl Dispatcher {
    /// For a server of so many seats, whose requests last as long as this unless they say otherwise. `observe` is given how
    /// many requests of a kind run or wait, whenever there are more.
    #[must_use]
    pub fn new(
        seats: usize,
        request_timeout: Duration,
        observe: impl Fn(Phase, Kind, usize) + Send + Sync + 'static,
    ) -> Self {
        let seats = u32::try_from(seats).unwrap_or(u32::MAX);
        Self { shared: Arc::new(Shared::new(seats, Box::new(observe))), request_timeout }
    }

    /// Goes by these objects from now on.
    #[must_use]
    pub fn digest(&self, schemas: &[Arc<FlowSchema>], levels: &[Arc<PriorityLevel>]) -> Rules<Waker> {
        let now = Instant::now();
        let rules = self.shared.controller.digest(schemas, levels, now);
        let [waiting, executing] = self.shared.controller.room();
        self.shared.current.set_room(Phase::Waiting, waiting, now);
        self.shared.current.set_room(Phase::Executing, executing, now);
        rules
    }

    /// All levels, by name.
    #[must_use]
    pub fn levels(&self) -> Vec<Arc<Level<Waker>>> {
        self.shared.controller.levels()
    }

    /// The fraction of their demand that levels got when seats were last shared out.
    #[must_use]
    pub fn fair_fraction(&self) -> f64 {
        self.shared.controller.fair_fraction()
    }

    /// How many requests run or wait, by kind.
    #[must_use]
    pub fn now(&self, phase: Phase) -> [usize; 2] {
        self.shared.current.now(phase)
    }

    /// How many requests ran or waited over time, of those that may.
    #[must_use]
    pub fn ratio(&self, phase: Phase, kind: Kind) -> Histogram {
        self.shared.current.shown(phase, kind, Instant::now())
    }

    /// A request comes, to which this schema applies.
    #[must_use]
    pub fn admit(&self, asked: Asked<'_>, matched: &Matched<Waker>) -> Decision {
        let work = self.shared.estimator.estimate(asked.info, asked.query, matched);
        let about: About = matched.about(asked.user, asked.info);
        let (level, now) = (&matched.level, Instant::now());
        let mut woken = None;
        let waker = || {
            let (waker, receiver) = Waker::new();
            woken = Some(receiver);
            waker
        };
        let admission = level.arrive(about, work, now, waker);
        let kind = Kind::of(asked.info);
        let seat = |ticket| Seat::new(Arc::clone(&self.shared), Arc::clone(level), ticket, kind);
        match (admission, woken) {
            (Admission::Executing(ticket), _) => Decision::Run(seat(ticket).taken()),
            (Admission::Waiting(ticket), Some(woken)) => {
                self.shared.look_after(level.next_due());
                Decision::Wait(self.wait(seat(ticket), woken, asked))
            }
            // It cannot wait without a waker.
            (Admission::Waiting(ticket), None) => {
                Decision::Reject(level.abandon(ticket, Reason::Cancelled, now))
            }
            (Admission::Rejected { retry_after, .. }, _) => Decision::Reject(retry_after),
        }
    }

    /// Estimates lists by these counts from now on, by `resource.group`.
    pub fn set_stored(&self, stored: HashMap<String, StoredObjects>) {
        self.shared.estimator.set_stored(stored);
    }

    /// A watch is counted until the guard is dropped.
    #[must_use]
    pub fn register_watch(&self, info: &RequestInfo) -> WatchGuard {
        self.shared.estimator.watches.register(info)
    }

    /// Shares out seats anew, every period, for ever.
    pub async fn rebalance(self) {
        let mut ticks = tokio::time::interval(BORROWING_PERIOD);
        loop {
            ticks.tick().await;
            self.shared.controller.rebalance(Instant::now());
        }
    }

    /// Gives seats back when they come back by themselves and somebody waits for them, for ever.
    pub async fn give_back(self) {
        loop {
            let noticed = self.shared.lingering.notified();
            match self.shared.controller.next_due() {
                Some(due) => {
                    // Whatever is due sooner is noticed, too.
                    let _ = tokio::time::timeout_at(due.into(), noticed).await;
                }
                None => noticed.await,
            }
            self.shared.controller.advance(Instant::now());
        }
    }

    fn wait(&self, seat: Seat, woken: oneshot::Receiver<()>, asked: Asked<'_>) -> WaitForSeat {
        let allotted = asked.deadline.map(|deadline| deadline.saturating_duration_since(asked.received));
        let part = allotted.unwrap_or(self.request_timeout) / WAITING_PART;
        WaitForSeat::new(seat, woken, asked.received + part.min(LONGEST_WAIT))
    }
}

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dispatcher")
    }
}
