//! Number of seats that a level could have used over time (upstream's `Integrator` and `seatDemandStats`).

use std::time::Instant;

/// Fraction of the smoothed demand that remains after a period; half of it remains after five minutes.
const SMOOTHING: f64 = 0.977;

/// Integrator of a number over time.
#[derive(Clone, Debug)]
pub struct Integrator {
    last: Instant,
    value: f64,
    seconds: f64,
    sum: f64,
    sum_of_squares: f64,
    max: f64,
}

impl Integrator {
    /// Returns an integrator that starts at zero.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self { last: now, value: 0.0, seconds: 0.0, sum: 0.0, sum_of_squares: 0.0, max: 0.0 }
    }

    /// Sets the number from `now` on.
    pub fn set(&mut self, value: f64, now: Instant) {
        let seconds = now.saturating_duration_since(self.last).as_secs_f64();
        self.last = self.last.max(now);
        self.seconds += seconds;
        self.sum += self.value * seconds;
        self.sum_of_squares += self.value * self.value * seconds;
        self.value = value;
        self.max = self.max.max(value);
    }

    /// Updates the demand with the values since the last call, and resets the integrator.
    pub fn take(&mut self, demand: &mut SeatDemand, now: Instant) {
        self.set(self.value, now);
        demand.high_watermark = self.max.round().max(0.0) as u32;
        if self.seconds > 0.0 {
            let average = self.sum / self.seconds;
            let deviation = (self.sum_of_squares / self.seconds - average * average).max(0.0).sqrt();
            let envelope = average + deviation;
            demand.average = average;
            demand.deviation = deviation;
            demand.smoothed = envelope.max(SMOOTHING * demand.smoothed + (1.0 - SMOOTHING) * envelope);
        }
        *self = Self { value: self.value, max: self.value, ..Self::new(self.last) };
    }
}

/// Seats that a level could have used in the last period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SeatDemand {
    /// Average over time.
    pub average: f64,
    /// Standard deviation.
    pub deviation: f64,
    /// Maximum over the period.
    pub high_watermark: u32,
    /// Smoothed demand, which decreases slowly.
    pub smoothed: f64,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn demand_is_averaged_over_time_and_falls_slowly() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let (mut integrator, mut demand) = (Integrator::new(begin), SeatDemand::default());
        integrator.set(8.0, at(0));
        integrator.set(0.0, at(5));
        integrator.take(&mut demand, at(10));
        assert_eq!((demand.average, demand.deviation, demand.high_watermark), (4.0, 4.0, 8));
        assert_eq!(demand.smoothed, 8.0);
        integrator.take(&mut demand, at(20));
        assert_eq!((demand.average, demand.high_watermark), (0.0, 0));
        assert!((demand.smoothed - 7.816).abs() < 1e-9, "{demand:?}");
    }

    #[test]
    fn an_empty_interval_does_not_change_the_demand() {
        let begin = Instant::now();
        let (mut integrator, mut demand) = (Integrator::new(begin), SeatDemand::default());
        integrator.take(&mut demand, begin);
        assert_eq!(demand, SeatDemand::default());
    }
}
