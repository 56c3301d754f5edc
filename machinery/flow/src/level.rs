//! State of one priority level: its queues behind one short lock, its limits and its statistics.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use portico_machinery::flow_control::PriorityLevel;

use crate::demand::SeatDemand;
use crate::limits::{SeatLimits, SeatNeed};
use crate::queue::Ticket;
use crate::queue_set::{ArrivalResult, ClassifiedRequest, QueueSet, RejectReason};
use crate::rejections::RejectionTracker;
use crate::work::Work;

/// Waker of a request that waits for a seat. Called without holding any lock.
pub trait Wake {
    /// Wakes the request, which may run now.
    fn wake(self);
}

/// Outcome of the arrival of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalOutcome {
    /// The request runs; the caller must call [`Level::finish`] when it ends.
    Executing(Ticket),
    /// The request waits until its waker is called; the caller must call [`Level::abandon`] or [`Level::finish`].
    Waiting(Ticket),
    /// The request is rejected.
    Rejected {
        /// Reason of the rejection.
        reason: RejectReason,
        /// Number of seconds after which the client should retry.
        retry_after: u64,
    },
}

/// Priority level with its requests.
#[derive(Debug)]
pub struct Level<W> {
    name: String,
    /// Start of the seconds that the rejection tracker counts.
    epoch: Instant,
    state: Mutex<LevelState<W>>,
}

#[derive(Debug)]
pub(crate) struct LevelState<W> {
    pub(crate) spec: Arc<PriorityLevel>,
    /// True if the object was removed and only requests are left.
    pub(crate) quiescing: bool,
    pub(crate) limits: SeatLimits,
    pub(crate) demand: SeatDemand,
    pub(crate) target: f64,
    pub(crate) set: QueueSet<W>,
    rejections: RejectionTracker,
}

impl<W: Wake> Level<W> {
    pub(crate) fn new(spec: &Arc<PriorityLevel>, now: Instant) -> Self {
        let state = LevelState {
            spec: Arc::clone(spec),
            quiescing: false,
            limits: SeatLimits::default(),
            demand: SeatDemand::default(),
            target: 0.0,
            set: QueueSet::new(spec.response, 0, now),
            rejections: RejectionTracker::default(),
        };
        Self { name: spec.name.clone(), epoch: now, state: Mutex::new(state) }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Handles the arrival of a request. A request that has to wait gets the waker that `waker` creates.
    pub fn arrive(
        &self,
        classified: ClassifiedRequest,
        work: Work,
        now: Instant,
        waker: impl FnOnce() -> W,
    ) -> ArrivalOutcome {
        self.with_state(|state| match state.set.arrive(classified, work, now, waker) {
            ArrivalResult::Executing(ticket) => ArrivalOutcome::Executing(ticket),
            ArrivalResult::Waiting(ticket) => ArrivalOutcome::Waiting(ticket),
            ArrivalResult::Rejected(reason) => {
                ArrivalOutcome::Rejected { reason, retry_after: self.record_rejection(state, now) }
            }
        })
    }

    /// Abandons a request that waits, or that was dispatched but will not run. Returns the number of seconds after which its
    /// client should retry.
    pub fn abandon(&self, ticket: Ticket, reason: RejectReason, now: Instant) -> u64 {
        self.with_state(|state| {
            state.set.abandon(ticket, reason, now);
            self.record_rejection(state, now)
        })
    }

    /// Ends a request that ran. Returns the next time at which lingering seats are released that requests wait for, if any.
    pub fn finish(&self, ticket: Ticket, now: Instant) -> Option<Instant> {
        self.with_state(|state| {
            state.set.finish(ticket, now);
            state.set.next_due()
        })
    }

    /// Returns the number of seconds after which a rejected client should retry.
    #[must_use]
    pub fn retry_after(&self) -> u64 {
        self.state.lock().rejections.retry_after()
    }

    /// Records the number of watches that receive the event of a write of this schema.
    pub fn observe_watches(&self, schema: usize, watches: u32) {
        self.with_state(|state| state.set.counts[schema].watches.observe(f64::from(watches)));
    }

    /// Returns the next time at which lingering seats are released that requests wait for, if any.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.state.lock().set.next_due()
    }

    /// Releases all seats that are due at `now`.
    pub fn advance(&self, now: Instant) {
        self.with_state(|state| state.set.advance(now));
    }

    pub(crate) fn counts_index(&self, schema: &str) -> usize {
        self.state.lock().set.counts_index(schema)
    }

    /// Changes the state, and wakes the requests that may run afterwards.
    pub(crate) fn with_state<T>(&self, change: impl FnOnce(&mut LevelState<W>) -> T) -> T {
        let (result, woken) = {
            let mut state = self.state.lock();
            let result = change(&mut state);
            (result, state.set.take_woken())
        };
        woken.into_iter().for_each(Wake::wake);
        result
    }

    fn record_rejection(&self, state: &mut LevelState<W>, now: Instant) -> u64 {
        state.rejections.record(now.saturating_duration_since(self.epoch).as_secs())
    }
}

impl<W> LevelState<W> {
    /// Takes the demand of the last period, and returns the resulting need.
    pub(crate) fn take_need(&mut self, now: Instant) -> SeatNeed {
        self.set.take_demand(&mut self.demand, now);
        let need = SeatNeed { is_exempt: self.spec.is_exempt(), limits: self.limits, demand: self.demand };
        self.target = need.target();
        need
    }

    /// Sets the current limit. `unlimited` is used for the utilization of a level without a limit.
    pub(crate) fn set_limit(&mut self, current: u32, unlimited: u32, now: Instant) {
        self.limits.current = current;
        let seats = if current > 0 { current } else { unlimited };
        self.set.utilization.set_seats(seats, now);
        self.set.configure(self.spec.response, current, now);
    }
}
