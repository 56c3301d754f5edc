//! Numbers of running and waiting requests, by kind, exposed as `apiserver_current_inflight_requests`.

use std::sync::atomic::{AtomicUsize, Ordering};

use std::time::Instant;

use parking_lot::Mutex;
use portico_machinery::RequestInfo;

use crate::counts::FlowHistogram;
use crate::ratio::{CURRENT_BUCKETS, TimedRatio};

/// Phase of a counted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPhase {
    /// The request is running.
    Executing,
    /// The request waits for a seat.
    Waiting,
}

/// Kind of a request; both kinds are counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// The verbs get, list and watch.
    ReadOnly,
    /// All other verbs.
    Mutating,
}

impl RequestKind {
    /// Returns the kind of a request.
    #[must_use]
    pub fn from_request(info: &RequestInfo) -> Self {
        if info.is_read_only() { Self::ReadOnly } else { Self::Mutating }
    }
}

/// Callback for a number that has increased.
pub(crate) type Observe = Box<dyn Fn(RequestPhase, RequestKind, usize) + Send + Sync>;

/// Numbers of requests in flight.
pub(crate) struct InflightCounts {
    counts: [[AtomicUsize; 2]; 2],
    ratios: [[Mutex<TimedRatio>; 2]; 2],
    observe: Observe,
}

impl InflightCounts {
    pub(crate) fn new(observe: Observe) -> Self {
        let now = Instant::now();
        let ratios = [(); 2].map(|()| [(); 2].map(|()| Mutex::new(TimedRatio::new(CURRENT_BUCKETS, now))));
        Self { counts: Default::default(), ratios, observe }
    }

    pub(crate) fn increment(&self, phase: RequestPhase, kind: RequestKind, now: Instant) {
        let mut ratio = self.ratios[phase as usize][kind as usize].lock();
        let count = self.counts[phase as usize][kind as usize].fetch_add(1, Ordering::Relaxed) + 1;
        ratio.set_numerator(u32::try_from(count).unwrap_or(u32::MAX), now);
        drop(ratio);
        (self.observe)(phase, kind, count);
    }

    pub(crate) fn decrement(&self, phase: RequestPhase, kind: RequestKind, now: Instant) {
        let mut ratio = self.ratios[phase as usize][kind as usize].lock();
        let count = self.counts[phase as usize][kind as usize].fetch_sub(1, Ordering::Relaxed) - 1;
        ratio.set_numerator(u32::try_from(count).unwrap_or(u32::MAX), now);
    }

    /// Sets the maximum number of requests of each kind in this phase.
    pub(crate) fn set_capacity(&self, phase: RequestPhase, requests: u32, now: Instant) {
        self.ratios[phase as usize].iter().for_each(|ratio| ratio.lock().set_denominator(requests, now));
    }

    /// Returns the ratios of the number of requests to the maximum, over time.
    pub(crate) fn histogram_at(&self, phase: RequestPhase, kind: RequestKind, now: Instant) -> FlowHistogram {
        self.ratios[phase as usize][kind as usize].lock().histogram_at(now)
    }

    /// Returns the current numbers by kind.
    pub(crate) fn counts_by_kind(&self, phase: RequestPhase) -> [usize; 2] {
        self.counts[phase as usize].each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}
