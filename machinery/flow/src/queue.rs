//! One queue of a level: who waits in it, in order, and what is under way from it.

use std::collections::VecDeque;

use crate::seat_seconds::SeatSeconds;

/// Names a request while it waits or runs.
pub type Ticket = usize;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) waiting: VecDeque<Ticket>,
    /// Initial seats of all that wait.
    pub(crate) initial_seats: u32,
    /// Seats of all that wait.
    pub(crate) waiting_seats: u32,
    /// Work of all that wait.
    pub(crate) waiting_work: SeatSeconds,
    /// Requests that run.
    pub(crate) executing: u32,
    /// Seats that are taken by them, and by what lingers after them.
    pub(crate) seats_in_use: u32,
    /// When, in virtual time, the next request is dispatched.
    pub(crate) next_dispatch: SeatSeconds,
}

impl Queue {
    /// Whether virtual time runs for it.
    pub(crate) fn is_active(&self) -> bool {
        !self.waiting.is_empty() || self.executing > 0
    }

    /// Whether nothing is left of it.
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_active() && self.seats_in_use == 0
    }
}
