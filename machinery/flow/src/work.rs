//! How much work a request is: seats while it runs, and seats for what it causes afterwards (upstream's `WorkEstimate` and its
//! estimators). What is not known costs one seat.

use std::time::Duration;

use crate::seat_seconds::SeatSeconds;

/// A list takes so many seats, at most.
pub const MAX_LIST_SEATS: u32 = 100;
/// A write takes so many seats, at most.
pub const MAX_WRITE_SEATS: u32 = 10;
/// Bytes of a list that a seat stands for.
const BYTES_PER_SEAT: u64 = 100_000;
/// Bytes of a list that are in memory at once: the rest is streamed.
const BYTES_AT_ONCE: u64 = 1_000_000;
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

/// Of a list, or of a watch that begins with one, that is so many bytes long; `max_seats` is the level's.
#[must_use]
pub fn of_list(bytes: Option<u64>, max_seats: u32) -> Work {
    let Some(bytes) = bytes else { return Work::LEAST };
    let seats = bytes.min(BYTES_AT_ONCE).div_ceil(BYTES_PER_SEAT) as u32;
    Work { initial_seats: seats.clamp(1, bounded(max_seats, MAX_LIST_SEATS)), ..Work::LEAST }
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

fn bounded(of_level: u32, limit: u32) -> u32 {
    if of_level == 0 { limit } else { of_level.min(limit) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_cost_by_size_and_unknown_ones_a_seat() {
        for (bytes, max, seats) in [
            (None, 10, 1),
            (Some(0), 10, 1),
            (Some(100_000), 10, 1),
            (Some(100_001), 10, 2),
            (Some(80_000_000), 10, 10),
            (Some(80_000_000), 3, 3),
            (Some(300_000), 0, 3),
        ] {
            assert_eq!(of_list(bytes, max).initial_seats, seats, "{bytes:?} {max}");
        }
    }

    #[test]
    fn writes_cost_by_watches_and_narrower_means_longer() {
        assert_eq!(of_write(9, 10), Work::LEAST);
        let small = of_write(10, 10);
        assert_eq!((small.final_seats, small.additional_latency), (1, Duration::from_millis(5)));
        let wide = of_write(1000, 10);
        assert_eq!((wide.final_seats, wide.additional_latency), (10, Duration::from_millis(50)));
        assert_eq!(of_write(1000, 5).additional_latency, Duration::from_millis(100));
    }
}
