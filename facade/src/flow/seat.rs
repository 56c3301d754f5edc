//! A request's seats: given back when dropped; and the place in a queue of a request that has none yet.

use std::sync::Arc;
use std::time::Instant;

use portico_flow::{Level, Reason, Ticket, Wake};
use tokio::sync::oneshot;

use super::Flow;
use super::sizes::SizeKey;
use crate::in_flight::Permit;
use crate::metrics::Class;

/// Wakes a request that waits.
#[derive(Debug)]
pub struct Waker(pub(super) oneshot::Sender<()>);

impl Wake for Waker {
    fn wake(self) {
        // Whoever has stopped waiting gives up its ticket itself.
        let _ = self.0.send(());
    }
}

/// Seats in a level, for a request that runs.
pub struct Seat {
    flow: Flow,
    level: Arc<Level<Waker>>,
    ticket: Ticket,
    class: Class,
    size: Option<SizeKey>,
    /// Counts it among those that run, or that wait.
    counted: Option<Permit>,
    /// Why it is given up, while it was not let run.
    gives_up: Option<Reason>,
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Seat({} {})", self.level.name(), self.ticket)
    }
}

impl Seat {
    pub(super) fn new(
        flow: Flow,
        level: Arc<Level<Waker>>,
        ticket: Ticket,
        class: Class,
        size: Option<SizeKey>,
    ) -> Self {
        Self { flow, level, ticket, class, size, counted: None, gives_up: None }
    }

    /// The same, counted among those that run.
    pub(super) fn taken(mut self) -> Self {
        self.gives_up = None;
        self.counted = self.flow.inner.executing.admit(self.class, true);
        self
    }

    /// The answer was so long.
    pub fn note_size(&self, bytes: u64) {
        if let Some(key) = self.size {
            self.flow.inner.sizes.note(key, bytes);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let now = Instant::now();
        match self.gives_up {
            Some(reason) => {
                self.level.abandon(self.ticket, reason, now);
            }
            None => self.flow.look_after(self.level.finish(self.ticket, now)),
        }
    }
}

/// A place in a queue, left when dropped.
pub struct WaitForSeat {
    seat: Seat,
    woken: oneshot::Receiver<()>,
    until: Instant,
}

impl WaitForSeat {
    pub(super) fn new(mut seat: Seat, woken: oneshot::Receiver<()>, until: Instant) -> Self {
        seat.gives_up = Some(Reason::Cancelled);
        seat.counted = seat.flow.inner.waiting.admit(seat.class, true);
        Self { seat, woken, until }
    }

    /// Waits for the seat.
    ///
    /// # Errors
    /// It took too long: the client should come again after so many seconds.
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
