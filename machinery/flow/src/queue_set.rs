//! The queues of one level and the seats that they share: fair queuing by virtual time (upstream's `queueset`).
//!
//! A request that arrives runs, waits or is rejected. Virtual time advances by the seats that each busy queue gets; the
//! queue whose oldest request would finish first in it is served next. Callers pass the time in and ask
//! [`QueueSet::take_woken`] afterwards who may go on.

mod dispatch;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portico_machinery::flow_control::Response;
use portico_machinery::{RequestInfo, UserInfo};
use slab::Slab;

use crate::counts::Counts;
use crate::dealer::Dealer;
use crate::demand::Integrator;
use crate::queue::{Queue, Ticket};
use crate::seat_seconds::SeatSeconds;
use crate::utilization::{Use, Utilization};
use crate::work::Work;

/// How long a request is taken to run before it has run.
const ESTIMATED_SERVICE: Duration = Duration::from_millis(3);

/// Name of a place that is free for the next schema.
const NO_SCHEMA: &str = "";

/// Why a request is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its queue is full.
    QueueFull,
    /// All seats are taken, and the level does not queue.
    ConcurrencyLimit,
    /// It has waited too long.
    TimeOut,
    /// Its client is gone.
    Cancelled,
}

impl Reason {
    /// All of them, as they are counted.
    pub const ALL: [Self; 4] = [Self::QueueFull, Self::ConcurrencyLimit, Self::TimeOut, Self::Cancelled];

    /// As metrics call it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::ConcurrencyLimit => "concurrency-limit",
            Self::TimeOut => "time-out",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Whose request it is, and what it is for.
#[derive(Clone, Debug)]
pub struct About {
    /// Where its schema is counted.
    pub schema: usize,
    /// The hash of its flow.
    pub hash: u64,
    /// What its schema distinguishes flows by.
    pub distinguisher: portico_machinery::flow_control::Distinguisher,
    /// Who.
    pub user: Arc<UserInfo>,
    /// What.
    pub request: Arc<RequestInfo>,
}

/// What becomes of a request that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It runs.
    Executing(Ticket),
    /// It waits.
    Waiting(Ticket),
    /// It is rejected.
    Rejected(Reason),
}

/// A request that waits, runs, or has left seats behind.
#[derive(Debug)]
pub(crate) struct Held<W> {
    pub(crate) about: About,
    pub(crate) queue: Option<usize>,
    pub(crate) work: Work,
    total_work: SeatSeconds,
    arrival: SeatSeconds,
    pub(crate) arrived: Instant,
    pub(crate) started: Option<Instant>,
    pub(crate) finished: bool,
    waker: Option<W>,
}

/// Virtual times when a request left a queue (upstream's `SetDispatchMetrics`).
#[derive(Clone, Copy, Debug)]
pub struct DispatchMarks {
    /// Of the level.
    pub virtual_time: SeatSeconds,
    /// When the request was to be dispatched.
    pub latest: SeatSeconds,
    /// The first and the last at which an oldest request of a queue is to be dispatched.
    pub bounds: [SeatSeconds; 2],
    /// The same less what is under way from that queue.
    pub discounted_bounds: [SeatSeconds; 2],
}

/// See the module.
#[derive(Debug)]
pub struct QueueSet<W> {
    response: Response,
    dealer: Option<Dealer>,
    limit: u32,
    /// More than there should be while those that are too many still have requests.
    pub(crate) queues: Vec<Queue>,
    pub(crate) requests: Slab<Held<W>>,
    /// Requests that ended and whose seats are given back then.
    lingering: BinaryHeap<Reverse<(Instant, Ticket)>>,
    woken: Vec<W>,
    /// Virtual time: work that each busy queue could have done since the start.
    virtual_time: SeatSeconds,
    synced: Instant,
    last_served: usize,
    enqueued: usize,
    active_queues: u32,
    demand: Integrator,
    pub(crate) utilization: Utilization,
    /// What was known when a request last left a queue.
    pub(crate) last_dispatch: Option<DispatchMarks>,
    pub(crate) waiting: u32,
    pub(crate) waiting_seats: u32,
    pub(crate) executing: u32,
    pub(crate) seats_in_use: u32,
    pub(crate) dispatched: u64,
    pub(crate) rejected: u64,
    pub(crate) timed_out: u64,
    pub(crate) cancelled: u64,
    pub(crate) counts: Vec<Counts>,
}

impl<W> QueueSet<W> {
    /// Without requests.
    #[must_use]
    pub fn new(response: Response, limit: u32, now: Instant) -> Self {
        let mut set = Self {
            response: Response::Reject,
            dealer: None,
            limit: 0,
            queues: Vec::new(),
            requests: Slab::new(),
            lingering: BinaryHeap::new(),
            woken: Vec::new(),
            virtual_time: SeatSeconds::default(),
            synced: now,
            last_served: 0,
            enqueued: 0,
            active_queues: 0,
            demand: Integrator::new(now),
            utilization: Utilization::new(now),
            last_dispatch: None,
            waiting: 0,
            waiting_seats: 0,
            executing: 0,
            seats_in_use: 0,
            dispatched: 0,
            rejected: 0,
            timed_out: 0,
            cancelled: 0,
            counts: Vec::new(),
        };
        set.configure(response, limit, now);
        set
    }

    /// Goes by this from now on; who waits goes on to wait.
    pub fn configure(&mut self, response: Response, limit: u32, now: Instant) {
        self.advance(now);
        if let Response::Queue(queuing) = response {
            self.dealer = Dealer::new(queuing.queues, queuing.hand_size);
            let wanted = (queuing.queues as usize).max(self.queues.len());
            self.queues.resize_with(wanted, Queue::default);
        }
        let room = match response {
            Response::Queue(queuing) => queuing.queues.saturating_mul(queuing.queue_length_limit),
            Response::Exempt | Response::Reject => 1,
        };
        self.utilization.set_room(room, now);
        self.response = response;
        self.limit = limit;
        self.drop_idle_queues();
        self.dispatch(now, None);
    }

    /// The place in which a schema is counted.
    pub fn counts_of(&mut self, schema: &str) -> usize {
        if let Some(place) = self.counts.iter().position(|counts| counts.schema == schema) {
            return place;
        }
        // Requests that were classified before a schema went may arrive in its place afterwards.
        let is_free = |place: &usize| self.counts[*place].schema == NO_SCHEMA && !self.has_requests(*place);
        let place = (0..self.counts.len()).find(is_free).unwrap_or(self.counts.len());
        match self.counts.get_mut(place) {
            Some(counts) => *counts = Counts::new(schema),
            None => self.counts.push(Counts::new(schema)),
        }
        place
    }

    /// Drops the counts of schemas that are gone and have no requests here.
    pub fn retain_counts(&mut self, is_there: impl Fn(&str) -> bool) {
        for place in 0..self.counts.len() {
            if !is_there(&self.counts[place].schema) && !self.has_requests(place) {
                self.counts[place] = Counts::new(NO_SCHEMA);
            }
        }
    }

    /// True if a request waits, runs or has left seats behind that is counted in this place.
    fn has_requests(&self, place: usize) -> bool {
        self.requests.iter().any(|(_, held)| held.about.schema == place)
    }

    /// Counts of each schema.
    pub(crate) fn counts(&self) -> impl Iterator<Item = &Counts> {
        self.counts.iter().filter(|counts| counts.schema != NO_SCHEMA)
    }

    /// A request arrives. One that waits is woken by what `waker` makes.
    pub fn arrive(&mut self, about: About, work: Work, now: Instant, waker: impl FnOnce() -> W) -> Arrival {
        self.advance(now);
        self.counts[about.schema].seats.observe(f64::from(work.max_seats()));
        let dealt = match (self.response, self.dealer) {
            (Response::Queue(queuing), Some(dealer)) => {
                Some((self.shortest(dealer, about.hash), queuing.queue_length_limit))
            }
            _ => None,
        };
        let Some((queue, length_limit)) = dealt else { return self.arrive_without_queue(about, work, now) };
        if self.seats_in_use >= self.limit && self.queues[queue].waiting.len() >= length_limit as usize {
            self.reject(about.schema, Reason::QueueFull);
            self.counts[about.schema].wait_rejected.observe(0.0);
            return Arrival::Rejected(Reason::QueueFull);
        }
        let schema = about.schema;
        let ticket = self.enqueue(about, work, queue, now);
        let length = self.queues[queue].waiting.len();
        self.counts[schema].queue_length.observe(length as f64);
        let only = (self.waiting == 1).then_some(queue);
        self.dispatch(now, only);
        let held = &mut self.requests[ticket];
        if held.started.is_some() {
            return Arrival::Executing(ticket);
        }
        held.waker = Some(waker());
        Arrival::Waiting(ticket)
    }

    /// A request that waited, or was let go on, is given up.
    pub fn abandon(&mut self, ticket: Ticket, reason: Reason, now: Instant) {
        self.advance(now);
        let Some(held) = self.requests.get(ticket) else { return };
        if held.started.is_some() {
            return self.finish(ticket, now);
        }
        let (schema, waited) = (held.about.schema, now.saturating_duration_since(held.arrived));
        self.leave_queue(ticket);
        self.requests.remove(ticket);
        self.counts[schema].wait_rejected.observe_time(waited);
        self.reject(schema, reason);
        match reason {
            Reason::TimeOut => self.timed_out += 1,
            _ => self.cancelled += 1,
        }
        self.note_demand();
        self.drop_idle_queues();
        // It may have stood before others, wanting more seats than there were.
        self.dispatch(now, None);
    }

    /// A request that ran has ended; its seats are given back now, or when what it caused is done.
    pub fn finish(&mut self, ticket: Ticket, now: Instant) {
        self.advance(now);
        let Some(held) = self.requests.get_mut(ticket).filter(|held| !held.finished) else { return };
        held.finished = true;
        let took = now.saturating_duration_since(held.started.unwrap_or(now));
        let (work, queue, schema) = (held.work, held.queue, held.about.schema);
        let is_watch = held.about.request.verb == "watch";
        self.executing -= 1;
        let counts = &mut self.counts[schema];
        counts.executing -= 1;
        let durations = if is_watch { &mut counts.watch_execution } else { &mut counts.execution };
        durations.observe_time(took);
        if let Some(at) = queue {
            let queue = &mut self.queues[at];
            queue.executing -= 1;
            let seats = f64::from(work.initial_seats);
            // It was dispatched as if it took the estimated time.
            queue.next_dispatch -= SeatSeconds::of(seats, ESTIMATED_SERVICE);
            queue.next_dispatch += SeatSeconds::of(seats, took);
            self.active_queues -= u32::from(!queue.is_active());
            self.bound_next_dispatch(at);
        }
        self.note_demand();
        if work.additional_latency.is_zero() {
            self.release(ticket);
        } else {
            self.lingering.push(Reverse((now + work.additional_latency, ticket)));
        }
        self.dispatch(now, None);
    }

    /// When seats come back by themselves that somebody waits for.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        let due = self.lingering.peek().map(|Reverse((due, _))| *due);
        due.filter(|_| self.waiting > 0)
    }

    /// Gives back what is due by now.
    pub fn advance(&mut self, now: Instant) {
        while let Some(Reverse((due, ticket))) = self.lingering.peek().copied()
            && due <= now
        {
            self.lingering.pop();
            self.sync(due);
            self.release(ticket);
            self.dispatch(due, None);
        }
        self.sync(now);
    }

    /// The wakers of requests that may run now.
    pub fn take_woken(&mut self) -> Vec<W> {
        std::mem::take(&mut self.woken)
    }

    /// Whether nobody waits or runs.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting == 0 && self.executing == 0
    }

    /// Takes the demand for seats of the last period.
    pub(crate) fn take_demand(&mut self, demand: &mut crate::SeatDemand, now: Instant) {
        self.advance(now);
        self.demand.take(demand, now);
    }

    /// Virtual time, for metrics.
    pub(crate) fn virtual_time(&self) -> SeatSeconds {
        self.virtual_time
    }
}
