//! Work of a request: seats while it runs, and seats for the events that it causes afterwards (upstream's `WorkEstimate` and
//! `mutatingWorkEstimator`). An unknown request costs one seat.

use std::time::Duration;

use crate::seat_seconds::SeatSeconds;

/// Seats of a write.
///
/// Limit (Priority and fairness): the write takes this many.
pub const MAX_WRITE_SEATS: u32 = 10;
/// Number of watches that occupy one seat with an event.
const WATCHES_PER_SEAT: u32 = 10;
/// Time for which an event occupies a seat.
const EVENT_TIME: Duration = Duration::from_millis(5);

/// Estimated work of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Seats while the request runs.
    pub initial_seats: u32,
    /// Seats after the request has finished.
    pub final_seats: u32,
    /// Time for which the final seats are occupied; the client does not wait for it.
    pub additional_latency: Duration,
}

impl Work {
    /// One seat, and none afterwards.
    pub const ONE_SEAT: Self = Self { initial_seats: 1, final_seats: 0, additional_latency: Duration::ZERO };

    /// Returns the number of seats that the request occupies.
    #[must_use]
    pub fn max_seats(&self) -> u32 {
        self.initial_seats.max(self.final_seats)
    }

    pub(crate) fn final_work(&self) -> SeatSeconds {
        SeatSeconds::new(f64::from(self.final_seats), self.additional_latency)
    }
}

/// Estimates the work of a write that this number of watches receives.
#[must_use]
pub fn estimate_write(watches: u32, max_seats: u32) -> Work {
    if watches < WATCHES_PER_SEAT {
        return Work::ONE_SEAT;
    }
    let seats = watches.div_ceil(WATCHES_PER_SEAT);
    let work = SeatSeconds::new(f64::from(seats), EVENT_TIME);
    // Wide requests block others while they wait for seats; fewer seats for a longer time are the same work.
    let final_seats = seats.min(min_limit(max_seats, MAX_WRITE_SEATS));
    Work { final_seats, additional_latency: work.per_seat(final_seats), ..Work::ONE_SEAT }
}

/// Returns the minimum of both limits; 0 means that the level has no limit.
pub(crate) fn min_limit(level_limit: u32, limit: u32) -> u32 {
    if level_limit == 0 { limit } else { level_limit.min(limit) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases of upstream's `TestWorkEstimator`.
    #[test]
    fn writes_cost_by_watches_and_fewer_seats_take_longer() {
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
            assert_eq!(estimate_write(watches, max_seats), work, "{watches} {max_seats}");
        }
    }
}
