//! Seats of a running request, released on drop, and the place in a queue of a request without seats.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;

use super::shared::SharedState;
use super::waker::SeatWaker;
use crate::inflight::{RequestKind, RequestPhase};
use crate::level::Level;
use crate::queue::Ticket;
use crate::queue_set::RejectReason;

/// Seats in a level for a running request.
pub struct Seat {
    shared: Arc<SharedState>,
    level: Arc<Level<SeatWaker>>,
    ticket: Ticket,
    kind: RequestKind,
    /// Phase in which the request is counted now.
    counted_phase: Option<RequestPhase>,
    /// Reason for which the request is abandoned on drop, while it has not started.
    abandon_reason: Option<RejectReason>,
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Seat({} {})", self.level.name(), self.ticket)
    }
}

impl Seat {
    pub(super) fn new(
        shared: Arc<SharedState>,
        level: Arc<Level<SeatWaker>>,
        ticket: Ticket,
        kind: RequestKind,
    ) -> Self {
        Self { shared, level, ticket, kind, counted_phase: None, abandon_reason: None }
    }

    /// Marks the request as running.
    pub(super) fn into_executing(mut self) -> Self {
        self.abandon_reason = None;
        self.count(Some(RequestPhase::Executing), Instant::now());
        self
    }

    fn count(&mut self, phase: Option<RequestPhase>, now: Instant) {
        if let Some(phase) = std::mem::replace(&mut self.counted_phase, phase) {
            self.shared.inflight.decrement(phase, self.kind, now);
        }
        if let Some(phase) = phase {
            self.shared.inflight.increment(phase, self.kind, now);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let now = Instant::now();
        self.count(None, now);
        match self.abandon_reason {
            Some(reason) => {
                self.level.abandon(self.ticket, reason, now);
                // The request may have been dispatched in the meantime: then its seats are released later.
                self.shared.notify_due(self.level.next_due());
            }
            None => self.shared.notify_due(self.level.finish(self.ticket, now)),
        }
    }
}

/// Place in a queue, which the request leaves on drop.
#[derive(Debug)]
pub struct WaitForSeat {
    seat: Seat,
    woken: oneshot::Receiver<()>,
    deadline: Instant,
}

impl WaitForSeat {
    pub(super) fn new(mut seat: Seat, woken: oneshot::Receiver<()>, deadline: Instant) -> Self {
        seat.abandon_reason = Some(RejectReason::Cancelled);
        seat.count(Some(RequestPhase::Waiting), Instant::now());
        Self { seat, woken, deadline }
    }

    /// Waits for the seat.
    ///
    /// # Errors
    /// Returns the number of seconds after which the client should retry, if the wait timed out.
    pub async fn seat(self) -> Result<Seat, u64> {
        let Self { mut seat, woken, deadline } = self;
        if let Ok(Ok(())) = tokio::time::timeout_at(deadline.into(), woken).await {
            return Ok(seat.into_executing());
        }
        seat.abandon_reason = Some(RejectReason::TimeOut);
        let level = Arc::clone(&seat.level);
        drop(seat);
        Err(level.retry_after())
    }
}
