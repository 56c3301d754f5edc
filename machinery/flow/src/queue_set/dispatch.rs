//! State changes of a queue set: virtual time, joining and leaving a queue, selection of the next request, seats.

use std::time::Instant;

use portico_machinery::flow_control::LimitResponse;

use super::{
    ArrivalResult, ClassifiedRequest, DispatchTimes, ESTIMATED_SERVICE, QueueSet, RejectReason,
    TrackedRequest, UsageSample,
};
use crate::dealer::Dealer;
use crate::queue::{Queue, Ticket};
use crate::seat_seconds::SeatSeconds;
use crate::work::Work;

impl<W> QueueSet<W> {
    /// Advances the virtual time to `now`, under the state since the last call.
    pub(super) fn sync_virtual_time(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.synced_at);
        self.synced_at = self.synced_at.max(now);
        if self.active_queues == 0 {
            return;
        }
        let requested_seats = self.seats_in_use + self.waiting_seats;
        let ratio = f64::from(requested_seats.min(self.limit)) / f64::from(self.active_queues);
        self.virtual_time += SeatSeconds::new(ratio, elapsed);
    }

    /// Returns the queue of a flow's hand with the least waiting work. The first queue to compare rotates, so that the order of
    /// dealing causes no bias for flows with overlapping hands.
    pub(super) fn shortest_queue(&mut self, dealer: Dealer, hash: u64) -> usize {
        let hand = dealer.deal(hash);
        let offset = self.enqueued % hand.len();
        self.enqueued = self.enqueued.wrapping_add(1);
        let in_turns = hand.clone().skip(offset).chain(hand.take(offset));
        in_turns.min_by_key(|queue| self.queues[*queue].waiting_work).unwrap_or(0)
    }

    pub(super) fn arrive_without_queue(
        &mut self,
        classified: ClassifiedRequest,
        work: Work,
        now: Instant,
    ) -> ArrivalResult {
        let schema = classified.counts_index;
        if !self.has_seats(work.max_seats()) {
            self.count_rejection(schema, RejectReason::ConcurrencyLimit);
            self.counts[schema].wait_rejected.observe(0.0);
            return ArrivalResult::Rejected(RejectReason::ConcurrencyLimit);
        }
        let ticket = self.insert_request(classified, work, None, now);
        self.start_request(ticket, now);
        ArrivalResult::Executing(ticket)
    }

    fn insert_request(
        &mut self,
        classified: ClassifiedRequest,
        work: Work,
        queue: Option<usize>,
        now: Instant,
    ) -> Ticket {
        let initial = SeatSeconds::new(f64::from(work.initial_seats), ESTIMATED_SERVICE);
        self.requests.insert(TrackedRequest {
            classified,
            queue,
            work,
            total_work: initial + work.final_work(),
            virtual_arrival: self.virtual_time,
            arrived: now,
            started: None,
            finished: false,
            waker: None,
        })
    }

    pub(super) fn enqueue(
        &mut self,
        classified: ClassifiedRequest,
        work: Work,
        at: usize,
        now: Instant,
    ) -> Ticket {
        let schema = classified.counts_index;
        let ticket = self.insert_request(classified, work, Some(at), now);
        let (seats, total_work) = (work.max_seats(), self.requests[ticket].total_work);
        let queue = &mut self.queues[at];
        if !queue.is_active() {
            queue.next_dispatch = self.virtual_time;
            self.active_queues += 1;
        }
        queue.waiting.push_back(ticket);
        queue.initial_seats += work.initial_seats;
        queue.waiting_seats += seats;
        queue.waiting_work += total_work;
        self.waiting += 1;
        self.waiting_seats += seats;
        self.counts[schema].waiting += 1;
        self.counts[schema].waiting_seats += seats;
        self.record_demand();
        self.bound_next_dispatch(at);
        ticket
    }

    /// Removes a request from its queue, at any position.
    pub(super) fn leave_queue(&mut self, ticket: Ticket) {
        let tracked = &self.requests[ticket];
        let (work, total_work, schema) = (tracked.work, tracked.total_work, tracked.classified.counts_index);
        let (Some(at), seats) = (tracked.queue, work.max_seats()) else { return };
        let queue = &mut self.queues[at];
        if queue.waiting.front() == Some(&ticket) {
            queue.waiting.pop_front();
        } else {
            queue.waiting.retain(|other| *other != ticket);
        }
        queue.initial_seats -= work.initial_seats;
        queue.waiting_seats -= seats;
        queue.waiting_work -= total_work;
        self.active_queues -= u32::from(!queue.is_active());
        self.waiting -= 1;
        self.waiting_seats -= seats;
        self.counts[schema].waiting -= 1;
        self.counts[schema].waiting_seats -= seats;
        self.bound_next_dispatch(at);
    }

    /// Dispatches requests while seats are free. `only` is the only queue that is not empty, if known.
    pub(super) fn dispatch(&mut self, now: Instant, only: Option<usize>) {
        while self.waiting > 0 && self.seats_in_use < self.limit {
            let Some(at) = only.or_else(|| self.next_queue()) else { return };
            let Some(ticket) = self.queues[at].waiting.front().copied() else { return };
            let tracked = &self.requests[ticket];
            if !self.has_seats(tracked.work.max_seats()) {
                let schema = tracked.classified.counts_index;
                self.counts[schema].no_accommodation += 1;
                return;
            }
            self.last_dispatch = Some(self.dispatch_times(at));
            self.last_served = at;
            self.leave_queue(ticket);
            self.limit_final_seats(ticket);
            // The queue was active before the request left it, and is active again when it starts.
            self.active_queues += u32::from(!self.queues[at].is_active());
            self.start_request(ticket, now);
            let tracked = &mut self.requests[ticket];
            self.queues[at].next_dispatch += tracked.total_work;
            self.woken.extend(tracked.waker.take());
            self.bound_next_dispatch(at);
        }
    }

    /// Returns the queue whose oldest request would finish first in virtual time. Among equal ones, the last served
    /// queue is last.
    fn next_queue(&self) -> Option<usize> {
        let count = self.queues.len();
        let in_turns = (1..=count).map(|step| (self.last_served + step) % count);
        let finish = |at: usize| {
            let queue = &self.queues[at];
            let oldest = queue.waiting.front()?;
            Some((queue.next_dispatch + self.requests[*oldest].total_work, at))
        };
        let mut best: Option<(SeatSeconds, usize)> = None;
        for (finish, at) in in_turns.filter_map(finish) {
            if best.is_none_or(|(earliest, _)| finish < earliest) {
                best = Some((finish, at));
            }
        }
        best.map(|(_, at)| at)
    }

    /// Returns the virtual times that upstream records for a dispatch from this queue.
    fn dispatch_times(&self, at: usize) -> DispatchTimes {
        let latest = self.queues[at].next_dispatch;
        let discounted = |queue: &Queue| {
            queue.next_dispatch - SeatSeconds::new(f64::from(queue.seats_in_use), ESTIMATED_SERVICE)
        };
        let initial_times = DispatchTimes {
            virtual_time: self.virtual_time,
            latest,
            bounds: [latest; 2],
            discounted_bounds: [discounted(&self.queues[at]); 2],
        };
        // Usually only one request waits.
        let queues = if self.waiting > 1 { self.queues.as_slice() } else { &[] };
        queues.iter().filter(|queue| !queue.waiting.is_empty()).fold(initial_times, |mut times, queue| {
            let (s, less) = (queue.next_dispatch, discounted(queue));
            times.bounds = [times.bounds[0].min(s), times.bounds[1].max(s)];
            times.discounted_bounds =
                [times.discounted_bounds[0].min(less), times.discounted_bounds[1].max(less)];
            times
        })
    }

    /// Limits the final seats of a request, which would otherwise never be free, and extends its latency instead.
    fn limit_final_seats(&mut self, ticket: Ticket) {
        let limit = self.limit;
        let work = &mut self.requests[ticket].work;
        if work.final_seats > limit {
            work.additional_latency = work.final_work().per_seat(limit);
            work.final_seats = limit;
        }
    }

    fn start_request(&mut self, ticket: Ticket, now: Instant) {
        let tracked = &mut self.requests[ticket];
        tracked.started = Some(now);
        let (seats, schema) = (tracked.work.max_seats(), tracked.classified.counts_index);
        let waited = now.saturating_duration_since(tracked.arrived);
        self.executing += 1;
        self.seats_in_use += seats;
        self.dispatched += 1;
        if let Some(at) = tracked.queue {
            self.queues[at].executing += 1;
            self.queues[at].seats_in_use += seats;
        }
        let counts = &mut self.counts[schema];
        counts.dispatched += 1;
        counts.executing += 1;
        counts.executing_seats += seats;
        if self.response != LimitResponse::Exempt {
            counts.wait_served.observe_time(waited);
        }
        self.record_demand();
    }

    /// Releases the seats of a request that has ended.
    pub(super) fn release(&mut self, ticket: Ticket) {
        let tracked = self.requests.remove(ticket);
        let seats = tracked.work.max_seats();
        self.seats_in_use -= seats;
        self.counts[tracked.classified.counts_index].executing_seats -= seats;
        if let Some(at) = tracked.queue {
            self.queues[at].seats_in_use -= seats;
            self.drop_idle_queues();
        }
        self.record_demand();
    }

    pub(super) fn count_rejection(&mut self, schema: usize, reason: RejectReason) {
        self.rejected += 1;
        self.counts[schema].rejected[reason as usize] += 1;
    }

    /// True if enough seats are free. A request that needs more seats than the limit runs alone.
    fn has_seats(&self, seats: u32) -> bool {
        match self.response {
            LimitResponse::Exempt => true,
            _ if seats > self.limit => self.executing == 0,
            _ => self.seats_in_use + seats <= self.limit,
        }
    }

    /// Prevents a queue from saving up unused service (upstream's anti-windup): the virtual dispatch of a request does
    /// not precede its arrival.
    pub(super) fn bound_next_dispatch(&mut self, at: usize) {
        let queue = &mut self.queues[at];
        if let Some(oldest) = queue.waiting.front() {
            queue.next_dispatch = queue.next_dispatch.max(self.requests[*oldest].virtual_arrival);
        }
    }

    /// Removes surplus queues from the end, once they are empty.
    pub(super) fn drop_idle_queues(&mut self) {
        let queue_count = match self.response {
            LimitResponse::Queue(queuing) => queuing.queues as usize,
            LimitResponse::Exempt | LimitResponse::Reject => 0,
        };
        while self.queues.len() > queue_count && self.queues.last().is_some_and(Queue::is_idle) {
            self.queues.pop();
        }
    }

    pub(super) fn record_demand(&mut self) {
        let seats_wanted = self.seats_in_use + self.waiting_seats;
        self.demand.set(f64::from(seats_wanted), self.synced_at);
        let (waiting, executing, seats_in_use) = (self.waiting, self.executing, self.seats_in_use);
        self.utilization.set(UsageSample { waiting, executing, seats_in_use, seats_wanted }, self.synced_at);
    }
}
