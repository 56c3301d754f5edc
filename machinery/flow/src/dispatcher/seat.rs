//! Seats of a running request, released on drop, and the place in a queue of a request without seats.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;

use super::shared::Shared;
use super::waker::Waker;
use crate::current::{Kind, Phase};
use crate::level::Level;
use crate::queue::Ticket;
use crate::queue_set::Reason;

/// Seats in a level for a running request.
pub struct Seat {
    shared: Arc<Shared>,
    level: Arc<Level<Waker>>,
    ticket: Ticket,
    kind: Kind,
    /// Phase in which the request is counted now.
    counted: Option<Phase>,
    /// Reason for which the request is abandoned on drop, while it has not started.
    gives_up: Option<Reason>,
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Seat({} {})", self.level.name(), self.ticket)
    }
}

impl Seat {
    pub(super) fn new(shared: Arc<Shared>, level: Arc<Level<Waker>>, ticket: Ticket, kind: Kind) -> Self {
        Self { shared, level, ticket, kind, counted: None, gives_up: None }
    }

    /// Marks the request as running.
    pub(super) fn taken(mut self) -> Self {
        self.gives_up = None;
        self.count(Some(Phase::Executing), Instant::now());
        self
    }

    fn count(&mut self, phase: Option<Phase>, now: Instant) {
        if let Some(phase) = std::mem::replace(&mut self.counted, phase) {
            self.shared.current.leave(phase, self.kind, now);
        }
        if let Some(phase) = phase {
            self.shared.current.enter(phase, self.kind, now);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let now = Instant::now();
        self.count(None, now);
        match self.gives_up {
            Some(reason) => {
                self.level.abandon(self.ticket, reason, now);
                // The request may have been dispatched in the meantime: then its seats are released later.
                self.shared.look_after(self.level.next_due());
            }
            None => self.shared.look_after(self.level.finish(self.ticket, now)),
        }
    }
}

/// Place in a queue, which the request leaves on drop.
#[derive(Debug)]
pub struct WaitForSeat {
    seat: Seat,
    woken: oneshot::Receiver<()>,
    until: Instant,
}

impl WaitForSeat {
    pub(super) fn new(mut seat: Seat, woken: oneshot::Receiver<()>, until: Instant) -> Self {
        seat.gives_up = Some(Reason::Cancelled);
        seat.count(Some(Phase::Waiting), Instant::now());
        Self { seat, woken, until }
    }

    /// Waits for the seat.
    ///
    /// # Errors
    /// Returns the number of seconds after which the client should retry, if the wait timed out.
    pub async fn seat(self) -> Result<Seat, u64> {
        let Self { mut seat, woken, until } = self;
        if let Ok(Ok(())) = tokio::time::timeout_at(until.into(), woken).await {
            return Ok(seat.taken());
        }
        seat.gives_up = Some(Reason::TimeOut);
        let level = Arc::clone(&seat.level);
        drop(seat);
        Err(level.retry_after())
    }
}
