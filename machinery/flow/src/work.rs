//! How much work a request is: seats while it runs, and seats for what it causes afterwards (upstream's `WorkEstimate` and its
//! `mutatingWorkEstimator`). What is not known costs one seat.

use std::time::Duration;

use crate::seat_seconds::SeatSeconds;

/// Seats of a write.
///
/// Limit (Priority and fairness): the write takes this many.
pub const MAX_WRITE_SEATS: u32 = 10;
/// Watches that an event keeps a seat busy for.
const WATCHES_PER_SEAT: u32 = 10;
/// For how long.
const EVENT_TIME: Duration = Duration::from_millis(5);

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Seats while it runs.
    pub initial_seats: u32,
    /// Seats afterwards.
    pub final_seats: u32,
    /// For how long; the client does not wait for it.
    pub additional_latency: Duration,
}

impl Work {
    /// One seat, and nothing afterwards.
    pub const LEAST: Self = Self { initial_seats: 1, final_seats: 0, additional_latency: Duration::ZERO };

    /// The seats that are kept for it.
    #[must_use]
    pub fn max_seats(&self) -> u32 {
        self.initial_seats.max(self.final_seats)
    }

    pub(crate) fn final_work(&self) -> SeatSeconds {
        SeatSeconds::of(f64::from(self.final_seats), self.additional_latency)
    }
}

/// Of a write that so many watches see.
#[must_use]
pub fn of_write(watches: u32, max_seats: u32) -> Work {
    if watches < WATCHES_PER_SEAT {
        return Work::LEAST;
    }
    let seats = watches.div_ceil(WATCHES_PER_SEAT);
    let work = SeatSeconds::of(f64::from(seats), EVENT_TIME);
    // Wide requests block others while they wait for seats: narrower and longer is the same work.
    let final_seats = seats.min(bounded(max_seats, MAX_WRITE_SEATS));
    Work { final_seats, additional_latency: work.per_seat(final_seats), ..Work::LEAST }
}

/// The level's limit, where it has one, and this at most.
pub(crate) fn bounded(of_level: u32, limit: u32) -> u32 {
    if of_level == 0 { limit } else { of_level.min(limit) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upstream's `TestWorkEstimator`.
    #[test]
    fn writes_cost_by_watches_and_narrower_means_longer() {
        for (watches, max_seats, final_seats, millis) in [
            (0, 10, 0, 0),
            (5, 10, 0, 0),
            (9, 10, 0, 0),
            (10, 10, 1, 5),
            (29, 10, 3, 5),
            (199, 10, 10, 10),
            (199, 5, 5, 20),
            (1000, 10, 10, 50),
            (1000, 0, 10, 50),
        ] {
            let additional_latency = Duration::from_millis(millis);
            let work = Work { initial_seats: 1, final_seats, additional_latency };
            assert_eq!(of_write(watches, max_seats), work, "{watches} {max_seats}");
        }
    }
}
