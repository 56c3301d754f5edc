//! Utilization of a level over time, exposed as upstream's `priority_level_*_utilization` and `demand_seats`.

use std::time::Instant;

use crate::counts::FlowHistogram;
use crate::ratio::{DEMAND_BUCKETS, REQUEST_BUCKETS, TimedRatio, UTILIZATION_BUCKETS};

/// Current numbers of a level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsageSample {
    pub(crate) waiting: u32,
    pub(crate) executing: u32,
    pub(crate) seats_in_use: u32,
    pub(crate) seats_wanted: u32,
}

/// Utilization of a level.
#[derive(Clone, Debug)]
pub(crate) struct Utilization {
    waiting: TimedRatio,
    executing: TimedRatio,
    seats: TimedRatio,
    demand: TimedRatio,
}

/// Snapshot of the utilization of a level.
#[derive(Clone, Debug)]
pub struct UtilizationDump {
    /// Waiting requests, relative to their maximum.
    pub waiting: FlowHistogram,
    /// Running requests, relative to the seats of the level.
    pub executing: FlowHistogram,
    /// Seats in use, relative to the seats of the level.
    pub seats: FlowHistogram,
    /// Seats that the level could use, relative to its seats.
    pub demand: FlowHistogram,
}

impl Utilization {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            waiting: TimedRatio::new(REQUEST_BUCKETS, now),
            executing: TimedRatio::new(REQUEST_BUCKETS, now),
            seats: TimedRatio::new(UTILIZATION_BUCKETS, now),
            demand: TimedRatio::new(DEMAND_BUCKETS, now),
        }
    }

    pub(crate) fn set(&mut self, used: UsageSample, now: Instant) {
        self.waiting.set_numerator(used.waiting, now);
        self.executing.set_numerator(used.executing, now);
        self.seats.set_numerator(used.seats_in_use, now);
        self.demand.set_numerator(used.seats_wanted, now);
    }

    /// Sets the maximum number of waiting requests.
    pub(crate) fn set_capacity(&mut self, requests: u32, now: Instant) {
        self.waiting.set_denominator(requests, now);
    }

    /// Sets the number of seats of the level.
    pub(crate) fn set_seats(&mut self, seats: u32, now: Instant) {
        for ratio in [&mut self.executing, &mut self.seats, &mut self.demand] {
            ratio.set_denominator(seats, now);
        }
    }

    pub(crate) fn dump(&self, now: Instant) -> UtilizationDump {
        UtilizationDump {
            waiting: self.waiting.histogram_at(now),
            executing: self.executing.histogram_at(now),
            seats: self.seats.histogram_at(now),
            demand: self.demand.histogram_at(now),
        }
    }
}
