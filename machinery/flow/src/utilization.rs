//! How a level is used over time: what upstream's `priority_level_*_utilization` and `demand_seats` show.

use std::time::Instant;

use crate::counts::Histogram;
use crate::ratio::{DEMAND_BUCKETS, REQUEST_BUCKETS, TimedRatio, UTILIZATION_BUCKETS};

/// Figures of a level now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) waiting: u32,
    pub(crate) executing: u32,
    pub(crate) seats_in_use: u32,
    pub(crate) seats_wanted: u32,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Utilization {
    waiting: TimedRatio,
    executing: TimedRatio,
    seats: TimedRatio,
    demand: TimedRatio,
}

/// The same, to be shown.
#[derive(Clone, Debug)]
pub struct UtilizationDump {
    /// Requests that wait, of those that may.
    pub waiting: Histogram,
    /// Requests that run, of its seats.
    pub executing: Histogram,
    /// Seats in use, of its seats.
    pub seats: Histogram,
    /// Seats that it could use, of its seats.
    pub demand: Histogram,
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

    pub(crate) fn set(&mut self, used: Use, now: Instant) {
        self.waiting.set(used.waiting, now);
        self.executing.set(used.executing, now);
        self.seats.set(used.seats_in_use, now);
        self.demand.set(used.seats_wanted, now);
    }

    /// So many requests may wait.
    pub(crate) fn set_room(&mut self, requests: u32, now: Instant) {
        self.waiting.set_denominator(requests, now);
    }

    /// It has so many seats.
    pub(crate) fn set_seats(&mut self, seats: u32, now: Instant) {
        for ratio in [&mut self.executing, &mut self.seats, &mut self.demand] {
            ratio.set_denominator(seats, now);
        }
    }

    pub(crate) fn dump(&self, now: Instant) -> UtilizationDump {
        UtilizationDump {
            waiting: self.waiting.shown(now),
            executing: self.executing.shown(now),
            seats: self.seats.shown(now),
            demand: self.demand.shown(now),
        }
    }
}
