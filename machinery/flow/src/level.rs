//! One priority level while it is used: its queues behind one short lock, its limits and what it remembers.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use portico_machinery::flow_control::PriorityLevel;

use crate::demand::SeatDemand;
use crate::dropped::Dropped;
use crate::limits::{Limits, Need};
use crate::queue::Ticket;
use crate::queue_set::{About, Arrival, QueueSet, Reason};
use crate::work::Work;

/// Wakes who waits for a seat; called without any lock.
pub trait Wake {
    /// It may run.
    fn wake(self);
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It runs; whoever runs it says when it ends.
    Executing(Ticket),
    /// It waits until its waker is called; whoever waits gives up or says when it ends.
    Waiting(Ticket),
    /// It is rejected, and should come again after so many seconds.
    Rejected {
        /// Why.
        reason: Reason,
        /// Seconds.
        retry_after: u64,
    },
}

/// See the module.
#[derive(Debug)]
pub struct Level<W> {
    name: String,
    /// Seconds count from here.
    epoch: Instant,
    state: Mutex<State<W>>,
}

#[derive(Debug)]
pub(crate) struct State<W> {
    pub(crate) spec: Arc<PriorityLevel>,
    /// Whether its object is gone and only its requests are left.
    pub(crate) quiescing: bool,
    pub(crate) limits: Limits,
    pub(crate) demand: SeatDemand,
    pub(crate) target: f64,
    pub(crate) set: QueueSet<W>,
    dropped: Dropped,
}

impl<W: Wake> Level<W> {
    pub(crate) fn new(spec: &Arc<PriorityLevel>, now: Instant) -> Self {
        let state = State {
            spec: Arc::clone(spec),
            quiescing: false,
            limits: Limits::default(),
            demand: SeatDemand::default(),
            target: 0.0,
            set: QueueSet::new(spec.response, 0, now),
            dropped: Dropped::default(),
        };
        Self { name: spec.name.clone(), epoch: now, state: Mutex::new(state) }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A request comes. One that has to wait is woken by what `waker` makes.
    pub fn arrive(&self, about: About, work: Work, now: Instant, waker: impl FnOnce() -> W) -> Admission {
        self.with(|state| match state.set.arrive(about, work, now, waker) {
            Arrival::Executing(ticket) => Admission::Executing(ticket),
            Arrival::Waiting(ticket) => Admission::Waiting(ticket),
            Arrival::Rejected(reason) => {
                Admission::Rejected { reason, retry_after: self.record_dropped(state, now) }
            }
        })
    }

    /// A request that was to wait is given up, or one that was let run will not; says after how many seconds its client
    /// should come again.
    pub fn abandon(&self, ticket: Ticket, reason: Reason, now: Instant) -> u64 {
        self.with(|state| {
            state.set.abandon(ticket, reason, now);
            self.record_dropped(state, now)
        })
    }

    /// A request that ran has ended; says when seats come back by themselves that somebody waits for.
    pub fn finish(&self, ticket: Ticket, now: Instant) -> Option<Instant> {
        self.with(|state| {
            state.set.finish(ticket, now);
            state.set.next_due()
        })
    }

    /// After how many seconds a rejected client should come again.
    #[must_use]
    pub fn retry_after(&self) -> u64 {
        self.state.lock().dropped.retry_after()
    }

    /// So many watches would see a write of this schema.
    pub fn observe_watches(&self, schema: usize, watches: u32) {
        self.with(|state| state.set.counts[schema].watches.observe(f64::from(watches)));
    }

    /// When seats come back by themselves that somebody waits for.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.state.lock().set.next_due()
    }

    /// Gives back what is due by now.
    pub fn advance(&self, now: Instant) {
        self.with(|state| state.set.advance(now));
    }

    pub(crate) fn counts_of(&self, schema: &str) -> usize {
        self.state.lock().set.counts_of(schema)
    }

    /// Does something to the state, and wakes whom that lets run.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut State<W>) -> T) -> T {
        let (result, woken) = {
            let mut state = self.state.lock();
            let result = change(&mut state);
            (result, state.set.take_woken())
        };
        woken.into_iter().for_each(Wake::wake);
        result
    }

    fn record_dropped(&self, state: &mut State<W>, now: Instant) -> u64 {
        state.dropped.record(now.saturating_duration_since(self.epoch).as_secs())
    }
}

impl<W> State<W> {
    /// Takes the demand of the last period.
    pub(crate) fn need(&mut self, now: Instant) -> Need {
        self.set.take_demand(&mut self.demand, now);
        let need = Need { exempt: self.spec.is_exempt(), limits: self.limits, demand: self.demand };
        self.target = need.target();
        need
    }

    /// `unlimited` seats stand for its limit where it has none.
    pub(crate) fn limit(&mut self, current: u32, unlimited: u32, now: Instant) {
        self.limits.current = current;
        let seats = if current > 0 { current } else { unlimited };
        self.set.utilization.set_seats(seats, now);
        self.set.configure(self.spec.response, current, now);
    }
}
