//! State changes of a queue set: virtual time, joining and leaving a queue, selection of the next request, seats.

use std::time::Instant;

use portico_machinery::flow_control::Response;

use super::{About, Arrival, DispatchMarks, ESTIMATED_SERVICE, Held, QueueSet, Reason, Use};
use crate::dealer::Dealer;
use crate::queue::{Queue, Ticket};
use crate::seat_seconds::SeatSeconds;
use crate::work::Work;

impl<W> QueueSet<W> {
    /// Advances the virtual time to `now`, under the state since the last call.
    pub(super) fn sync(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.synced);
        self.synced = self.synced.max(now);
        if self.active_queues == 0 {
            return;
        }
        let wanted = self.seats_in_use + self.waiting_seats;
        let ratio = f64::from(wanted.min(self.limit)) / f64::from(self.active_queues);
        self.virtual_time += SeatSeconds::of(ratio, passed);
    }

    /// Returns the queue of a flow's hand with the least waiting work. The first queue to compare rotates, so that the order of
    /// dealing causes no bias for flows with overlapping hands.
    pub(super) fn shortest(&mut self, dealer: Dealer, hash: u64) -> usize {
        let hand = dealer.deal(hash);
        let offset = self.enqueued % hand.len();
        self.enqueued = self.enqueued.wrapping_add(1);
        let in_turns = hand.clone().skip(offset).chain(hand.take(offset));
        in_turns.min_by_key(|queue| self.queues[*queue].waiting_work).unwrap_or(0)
    }

    pub(super) fn arrive_without_queue(&mut self, about: About, work: Work, now: Instant) -> Arrival {
        let schema = about.schema;
        if !self.has_seats(work.max_seats()) {
            self.reject(schema, Reason::ConcurrencyLimit);
            self.counts[schema].wait_rejected.observe(0.0);
            return Arrival::Rejected(Reason::ConcurrencyLimit);
        }
        let ticket = self.hold(about, work, None, now);
        self.start(ticket, now);
        Arrival::Executing(ticket)
    }

    fn hold(&mut self, about: About, work: Work, queue: Option<usize>, now: Instant) -> Ticket {
        let initial = SeatSeconds::of(f64::from(work.initial_seats), ESTIMATED_SERVICE);
        self.requests.insert(Held {
            about,
            queue,
            work,
            total_work: initial + work.final_work(),
            arrival: self.virtual_time,
            arrived: now,
            started: None,
            finished: false,
            waker: None,
        })
    }

    pub(super) fn enqueue(&mut self, about: About, work: Work, at: usize, now: Instant) -> Ticket {
        let schema = about.schema;
        let ticket = self.hold(about, work, Some(at), now);
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
        self.note_demand();
        self.bound_next_dispatch(at);
        ticket
    }

    /// Removes a request from its queue, at any position.
    pub(super) fn leave_queue(&mut self, ticket: Ticket) {
        let held = &self.requests[ticket];
        let (work, total_work, schema) = (held.work, held.total_work, held.about.schema);
        let (Some(at), seats) = (held.queue, work.max_seats()) else { return };
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
            let held = &self.requests[ticket];
            if !self.has_seats(held.work.max_seats()) {
                let schema = held.about.schema;
                self.counts[schema].no_accommodation += 1;
                return;
            }
            self.last_dispatch = Some(self.marks(at));
            self.last_served = at;
            self.leave_queue(ticket);
            self.narrow(ticket);
            // The queue was active before the request left it, and is active again when it starts.
            self.active_queues += u32::from(!self.queues[at].is_active());
            self.start(ticket, now);
            let held = &mut self.requests[ticket];
            self.queues[at].next_dispatch += held.total_work;
            self.woken.extend(held.waker.take());
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
    fn marks(&self, at: usize) -> DispatchMarks {
        let latest = self.queues[at].next_dispatch;
        let discounted = |queue: &Queue| {
            queue.next_dispatch - SeatSeconds::of(f64::from(queue.seats_in_use), ESTIMATED_SERVICE)
        };
        let begin = DispatchMarks {
            virtual_time: self.virtual_time,
            latest,
            bounds: [latest; 2],
            discounted_bounds: [discounted(&self.queues[at]); 2],
        };
        // Usually only one request waits.
        let others = if self.waiting > 1 { self.queues.as_slice() } else { &[] };
        others.iter().filter(|queue| !queue.waiting.is_empty()).fold(begin, |mut marks, queue| {
            let (s, less) = (queue.next_dispatch, discounted(queue));
            marks.bounds = [marks.bounds[0].min(s), marks.bounds[1].max(s)];
            marks.discounted_bounds =
                [marks.discounted_bounds[0].min(less), marks.discounted_bounds[1].max(less)];
            marks
        })
    }

    /// Limits the final seats of a request, which would otherwise never be free, and extends its latency instead.
    fn narrow(&mut self, ticket: Ticket) {
        let limit = self.limit;
        let work = &mut self.requests[ticket].work;
        if work.final_seats > limit {
            work.additional_latency = work.final_work().per_seat(limit);
            work.final_seats = limit;
        }
    }

    fn start(&mut self, ticket: Ticket, now: Instant) {
        let held = &mut self.requests[ticket];
        held.started = Some(now);
        let (seats, schema) = (held.work.max_seats(), held.about.schema);
        let waited = now.saturating_duration_since(held.arrived);
        self.executing += 1;
        self.seats_in_use += seats;
        self.dispatched += 1;
        if let Some(at) = held.queue {
            self.queues[at].executing += 1;
            self.queues[at].seats_in_use += seats;
        }
        let counts = &mut self.counts[schema];
        counts.dispatched += 1;
        counts.executing += 1;
        counts.executing_seats += seats;
        if self.response != Response::Exempt {
            counts.wait_served.observe_time(waited);
        }
        self.note_demand();
    }

    /// Releases the seats of a request that has ended.
    pub(super) fn release(&mut self, ticket: Ticket) {
        let held = self.requests.remove(ticket);
        let seats = held.work.max_seats();
        self.seats_in_use -= seats;
        self.counts[held.about.schema].executing_seats -= seats;
        if let Some(at) = held.queue {
            self.queues[at].seats_in_use -= seats;
            self.drop_idle_queues();
        }
        self.note_demand();
    }

    pub(super) fn reject(&mut self, schema: usize, reason: Reason) {
        self.rejected += 1;
        self.counts[schema].rejected[reason as usize] += 1;
    }

    /// True if enough seats are free. A request that needs more seats than the limit runs alone.
    fn has_seats(&self, seats: u32) -> bool {
        match self.response {
            Response::Exempt => true,
            _ if seats > self.limit => self.executing == 0,
            _ => self.seats_in_use + seats <= self.limit,
        }
    }

    /// Prevents a queue from saving up unused service (upstream's anti-windup): the virtual dispatch of a request does
    /// not precede its arrival.
    pub(super) fn bound_next_dispatch(&mut self, at: usize) {
        let queue = &mut self.queues[at];
        if let Some(oldest) = queue.waiting.front() {
            queue.next_dispatch = queue.next_dispatch.max(self.requests[*oldest].arrival);
        }
    }

    /// Removes surplus queues from the end, once they are empty.
    pub(super) fn drop_idle_queues(&mut self) {
        let wanted = match self.response {
            Response::Queue(queuing) => queuing.queues as usize,
            Response::Exempt | Response::Reject => 0,
        };
        while self.queues.len() > wanted && self.queues.last().is_some_and(Queue::is_idle) {
            self.queues.pop();
        }
    }

    pub(super) fn note_demand(&mut self) {
        let seats_wanted = self.seats_in_use + self.waiting_seats;
        self.demand.set(f64::from(seats_wanted), self.synced);
        let (waiting, executing, seats_in_use) = (self.waiting, self.executing, self.seats_in_use);
        self.utilization.set(Use { waiting, executing, seats_in_use, seats_wanted }, self.synced);
    }
}
