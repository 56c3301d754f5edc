//! Seat-seconds: unit of work and of the virtual time of fair queuing.
//!
//! Upstream uses 64 bits and resets the virtual time before it overflows; 128 bits never overflow.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

/// Number of smallest units per seat-second.
const SCALE: i128 = 100_000_000;

/// Number of seat-seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeatSeconds(i128);

impl SeatSeconds {
    /// Maximum, greater than any real value.
    pub const MAX: Self = Self(i128::MAX);

    /// Returns the product of a number of seats and a duration.
    #[must_use]
    pub fn new(seats: f64, time: Duration) -> Self {
        // The unit is ten nanoseconds of a seat.
        Self((seats * time.as_nanos() as f64 / 10.0).round() as i128)
    }

    /// Converts to a floating-point number of seat-seconds.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / SCALE as f64
    }

    /// Returns the duration of this work on a number of seats.
    #[must_use]
    pub fn per_seat(self, seats: u32) -> Duration {
        let nanos = self.0.max(0) as f64 * 10.0 / f64::from(seats.max(1));
        Duration::from_nanos(nanos as u64)
    }
}

impl Add for SeatSeconds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for SeatSeconds {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl AddAssign for SeatSeconds {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl SubAssign for SeatSeconds {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl fmt::Display for SeatSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:08}ss", self.0.div_euclid(SCALE), self.0.rem_euclid(SCALE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_and_time_multiply_and_divide() {
        let work = SeatSeconds::new(2.0, Duration::from_millis(1500));
        assert_eq!(work.to_string(), "3.00000000ss");
        assert_eq!(work.per_seat(3), Duration::from_secs(1));
        assert_eq!(SeatSeconds::new(1.0, Duration::from_millis(3)).to_string(), "0.00300000ss");
        assert!((work - work + work).as_f64() > 2.999);
    }
}
