//! Queue of a level: its waiting requests in order, and statistics of its running requests.

use std::collections::VecDeque;

use crate::seat_seconds::SeatSeconds;

/// Identifier of a waiting or running request.
pub type Ticket = usize;

/// Queue of a level.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) waiting: VecDeque<Ticket>,
    /// Initial seats of all waiting requests.
    pub(crate) initial_seats: u32,
    /// Maximum seats of all waiting requests.
    pub(crate) waiting_seats: u32,
    /// Work of all waiting requests.
    pub(crate) waiting_work: SeatSeconds,
    /// Number of running requests.
    pub(crate) executing: u32,
    /// Seats in use by running requests and lingering seats.
    pub(crate) seats_in_use: u32,
    /// Virtual time at which the next request is dispatched.
    pub(crate) next_dispatch: SeatSeconds,
}

impl Queue {
    /// True if the queue takes part in virtual time.
    pub(crate) fn is_active(&self) -> bool {
        !self.waiting.is_empty() || self.executing > 0
    }

    /// True if the queue has no requests and no lingering seats.
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_active() && self.seats_in_use == 0
    }
}
