//! Queues of one level and the seats that they share: fair queuing by virtual time (upstream's `queueset`).
//!
//! A request that arrives runs, waits or is rejected. Virtual time advances by the seats that each busy queue gets. The
//! queue whose oldest request would finish first in virtual time is served next. Callers pass the time, and call
//! [`QueueSet::take_woken`] afterwards for the requests that may run.

mod dispatch;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portico_machinery::flow_control::LimitResponse;
use portico_machinery::{RequestInfo, UserInfo};
use slab::Slab;

use crate::counts::SchemaCounts;
use crate::dealer::Dealer;
use crate::demand::Integrator;
use crate::queue::{Queue, Ticket};
use crate::seat_seconds::SeatSeconds;
use crate::utilization::{UsageSample, Utilization};
use crate::work::Work;

/// Estimated execution time of a request that has not run yet.
const ESTIMATED_SERVICE: Duration = Duration::from_millis(3);

/// Schema name of a free entry in the counters.
const NO_SCHEMA: &str = "";

/// Reason of the rejection of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// The queue is full.
    QueueFull,
    /// All seats are in use, and the level does not queue requests.
    ConcurrencyLimit,
    /// The wait timed out.
    TimeOut,
    /// The client disconnected.
    Cancelled,
}

impl RejectReason {
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; 4] = [Self::QueueFull, Self::ConcurrencyLimit, Self::TimeOut, Self::Cancelled];

    /// Returns the value of the label in metrics.
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

/// Request with its flow.
#[derive(Clone, Debug)]
pub struct ClassifiedRequest {
    /// Index of the counters of its schema.
    pub counts_index: usize,
    /// Hash of its flow.
    pub hash: u64,
    /// Distinguisher of its schema.
    pub distinguisher: portico_machinery::flow_control::Distinguisher,
    /// User of the request.
    pub user: Arc<UserInfo>,
    /// Attributes of the request.
    pub request: Arc<RequestInfo>,
}

/// Result of the arrival of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalResult {
    /// The request runs.
    Executing(Ticket),
    /// The request waits.
    Waiting(Ticket),
    /// The request is rejected.
    Rejected(RejectReason),
}

/// Request that waits, runs, or has lingering seats.
#[derive(Debug)]
pub(crate) struct TrackedRequest<W> {
    pub(crate) classified: ClassifiedRequest,
    pub(crate) queue: Option<usize>,
    pub(crate) work: Work,
    total_work: SeatSeconds,
    virtual_arrival: SeatSeconds,
    pub(crate) arrived: Instant,
    pub(crate) started: Option<Instant>,
    pub(crate) finished: bool,
    waker: Option<W>,
}

/// Virtual times at the dispatch of a request (upstream's `SetDispatchMetrics`).
#[derive(Clone, Copy, Debug)]
pub struct DispatchTimes {
    /// Virtual time of the level.
    pub virtual_time: SeatSeconds,
    /// Virtual time at which the request was to be dispatched.
    pub latest: SeatSeconds,
    /// Earliest and latest virtual time at which the oldest request of a queue is to be dispatched.
    pub bounds: [SeatSeconds; 2],
    /// The bounds, reduced by the running work of the queue.
    pub discounted_bounds: [SeatSeconds; 2],
}

/// Queues of one level.
#[derive(Debug)]
pub struct QueueSet<W> {
    response: LimitResponse,
    dealer: Option<Dealer>,
    limit: u32,
    /// Queues. There may be more than configured while surplus queues have requests.
    pub(crate) queues: Vec<Queue>,
    pub(crate) requests: Slab<TrackedRequest<W>>,
    /// Finished requests with the times at which their lingering seats are released.
    lingering: BinaryHeap<Reverse<(Instant, Ticket)>>,
    woken: Vec<W>,
    /// Virtual time: work that each busy queue could have done since the start.
    virtual_time: SeatSeconds,
    synced_at: Instant,
    last_served: usize,
    enqueued: usize,
    active_queues: u32,
    demand: Integrator,
    pub(crate) utilization: Utilization,
    /// Virtual times of the last dispatch from a queue.
    pub(crate) last_dispatch: Option<DispatchTimes>,
    pub(crate) waiting: u32,
    pub(crate) waiting_seats: u32,
    pub(crate) executing: u32,
    pub(crate) seats_in_use: u32,
    pub(crate) dispatched: u64,
    pub(crate) rejected: u64,
    pub(crate) timed_out: u64,
    pub(crate) cancelled: u64,
    pub(crate) counts: Vec<SchemaCounts>,
}

impl<W> QueueSet<W> {
    /// Returns a queue set without requests.
    #[must_use]
    pub fn new(response: LimitResponse, limit: u32, now: Instant) -> Self {
        let mut set = Self {
            response: LimitResponse::Reject,
            dealer: None,
            limit: 0,
            queues: Vec::new(),
            requests: Slab::new(),
            lingering: BinaryHeap::new(),
            woken: Vec::new(),
            virtual_time: SeatSeconds::default(),
            synced_at: now,
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

    /// Changes the configuration. Waiting requests continue to wait.
    pub fn configure(&mut self, response: LimitResponse, limit: u32, now: Instant) {
        self.advance(now);
        if let LimitResponse::Queue(queuing) = response {
            self.dealer = Dealer::new(queuing.queues, queuing.hand_size);
            let queue_count = (queuing.queues as usize).max(self.queues.len());
            self.queues.resize_with(queue_count, Queue::default);
        }
        let room = match response {
            LimitResponse::Queue(queuing) => queuing.queues.saturating_mul(queuing.queue_length_limit),
            LimitResponse::Exempt | LimitResponse::Reject => 1,
        };
        self.utilization.set_capacity(room, now);
        self.response = response;
        self.limit = limit;
        self.drop_idle_queues();
        self.dispatch(now, None);
    }

    /// Returns the index of the counters of a schema, which are created if necessary.
    pub fn counts_index(&mut self, schema: &str) -> usize {
        if let Some(place) = self.counts.iter().position(|counts| counts.schema == schema) {
            return place;
        }
        // Requests classified before a schema was removed may arrive later and use its index.
        let is_free = |index: &usize| self.counts[*index].schema == NO_SCHEMA && !self.has_requests(*index);
        let index = (0..self.counts.len()).find(is_free).unwrap_or(self.counts.len());
        match self.counts.get_mut(index) {
            Some(counts) => *counts = SchemaCounts::new(schema),
            None => self.counts.push(SchemaCounts::new(schema)),
        }
        index
    }

    /// Drops the counters of removed schemas without requests.
    pub fn retain_counts(&mut self, is_there: impl Fn(&str) -> bool) {
        for place in 0..self.counts.len() {
            if !is_there(&self.counts[place].schema) && !self.has_requests(place) {
                self.counts[place] = SchemaCounts::new(NO_SCHEMA);
            }
        }
    }

    /// True if a request that waits, runs or has lingering seats uses the counters at this index.
    fn has_requests(&self, index: usize) -> bool {
        self.requests.iter().any(|(_, tracked)| tracked.classified.counts_index == index)
    }

    /// Returns the counters of all schemas.
    pub(crate) fn counts(&self) -> impl Iterator<Item = &SchemaCounts> {
        self.counts.iter().filter(|counts| counts.schema != NO_SCHEMA)
    }

    /// Handles the arrival of a request. A request that has to wait gets the waker that `waker` creates.
    pub fn arrive(
        &mut self,
        classified: ClassifiedRequest,
        work: Work,
        now: Instant,
        waker: impl FnOnce() -> W,
    ) -> ArrivalResult {
        self.advance(now);
        self.counts[classified.counts_index].seats.observe(f64::from(work.max_seats()));
        let target_queue = match (self.response, self.dealer) {
            (LimitResponse::Queue(queuing), Some(dealer)) => {
                Some((self.shortest_queue(dealer, classified.hash), queuing.queue_length_limit))
            }
            _ => None,
        };
        let Some((queue, length_limit)) = target_queue else {
            return self.arrive_without_queue(classified, work, now);
        };
        if self.seats_in_use >= self.limit && self.queues[queue].waiting.len() >= length_limit as usize {
            self.count_rejection(classified.counts_index, RejectReason::QueueFull);
            self.counts[classified.counts_index].wait_rejected.observe(0.0);
            return ArrivalResult::Rejected(RejectReason::QueueFull);
        }
        let schema = classified.counts_index;
        let ticket = self.enqueue(classified, work, queue, now);
        let length = self.queues[queue].waiting.len();
        self.counts[schema].queue_length.observe(length as f64);
        let only = (self.waiting == 1).then_some(queue);
        self.dispatch(now, only);
        let tracked = &mut self.requests[ticket];
        if tracked.started.is_some() {
            return ArrivalResult::Executing(ticket);
        }
        tracked.waker = Some(waker());
        ArrivalResult::Waiting(ticket)
    }

    /// Abandons a request that waits, or that was dispatched but will not run.
    pub fn abandon(&mut self, ticket: Ticket, reason: RejectReason, now: Instant) {
        self.advance(now);
        let Some(tracked) = self.requests.get(ticket) else { return };
        if tracked.started.is_some() {
            return self.finish(ticket, now);
        }
        let (schema, waited) =
            (tracked.classified.counts_index, now.saturating_duration_since(tracked.arrived));
        self.leave_queue(ticket);
        self.requests.remove(ticket);
        self.counts[schema].wait_rejected.observe_time(waited);
        self.count_rejection(schema, reason);
        match reason {
            RejectReason::TimeOut => self.timed_out += 1,
            _ => self.cancelled += 1,
        }
        self.record_demand();
        self.drop_idle_queues();
        // The request may have blocked others, because it needed more seats than were free.
        self.dispatch(now, None);
    }

    /// Ends a request that ran. Its seats are released now, or after its additional latency.
    pub fn finish(&mut self, ticket: Ticket, now: Instant) {
        self.advance(now);
        let Some(tracked) = self.requests.get_mut(ticket).filter(|tracked| !tracked.finished) else { return };
        tracked.finished = true;
        let elapsed = now.saturating_duration_since(tracked.started.unwrap_or(now));
        let (work, queue, schema) = (tracked.work, tracked.queue, tracked.classified.counts_index);
        let is_watch = tracked.classified.request.verb == "watch";
        self.executing -= 1;
        let counts = &mut self.counts[schema];
        counts.executing -= 1;
        let durations = if is_watch { &mut counts.watch_execution } else { &mut counts.execution };
        durations.observe_time(elapsed);
        if let Some(at) = queue {
            let queue = &mut self.queues[at];
            queue.executing -= 1;
            let seats = f64::from(work.initial_seats);
            // It was dispatched with the estimated execution time, which the actual time replaces.
            queue.next_dispatch -= SeatSeconds::new(seats, ESTIMATED_SERVICE);
            queue.next_dispatch += SeatSeconds::new(seats, elapsed);
            self.active_queues -= u32::from(!queue.is_active());
            self.bound_next_dispatch(at);
        }
        self.record_demand();
        if work.additional_latency.is_zero() {
            self.release(ticket);
        } else {
            self.lingering.push(Reverse((now + work.additional_latency, ticket)));
        }
        self.dispatch(now, None);
    }

    /// Returns the next time at which lingering seats are released that requests wait for, if any.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        let due = self.lingering.peek().map(|Reverse((due, _))| *due);
        due.filter(|_| self.waiting > 0)
    }

    /// Releases all seats that are due at `now`.
    pub fn advance(&mut self, now: Instant) {
        while let Some(Reverse((due, ticket))) = self.lingering.peek().copied()
            && due <= now
        {
            self.lingering.pop();
            self.sync_virtual_time(due);
            self.release(ticket);
            self.dispatch(due, None);
        }
        self.sync_virtual_time(now);
    }

    /// Returns the wakers of requests that may run now.
    pub fn take_woken(&mut self) -> Vec<W> {
        std::mem::take(&mut self.woken)
    }

    /// True if no request waits or runs.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting == 0 && self.executing == 0
    }

    /// Updates `demand` with the demand of the last period.
    pub(crate) fn take_demand(&mut self, demand: &mut crate::SeatDemand, now: Instant) {
        self.advance(now);
        self.demand.take(demand, now);
    }

    /// Returns the virtual time, for metrics.
    pub(crate) fn virtual_time(&self) -> SeatSeconds {
        self.virtual_time
    }
}
