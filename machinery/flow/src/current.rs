//! How many requests run and how many wait, by kind: what `apiserver_current_inflight_requests` shows.

use std::sync::atomic::{AtomicUsize, Ordering};

use std::time::Instant;

use parking_lot::Mutex;
use portico_machinery::RequestInfo;

use crate::counts::Histogram;
use crate::ratio::{CURRENT_BUCKETS, TimedRatio};

/// What requests do that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// They run.
    Executing,
    /// They wait for a seat.
    Waiting,
}

/// Two kinds of requests that are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// get, list, watch
    ReadOnly,
    /// The rest.
    Mutating,
}

impl Kind {
    /// Of a request.
    #[must_use]
    pub fn of(info: &RequestInfo) -> Self {
        if info.is_read_only() { Self::ReadOnly } else { Self::Mutating }
    }
}

/// Is given a number that has grown.
pub(crate) type Observe = Box<dyn Fn(Phase, Kind, usize) + Send + Sync>;

/// See the module.
pub(crate) struct Current {
    counts: [[AtomicUsize; 2]; 2],
    ratios: [[Mutex<TimedRatio>; 2]; 2],
    observe: Observe,
}

impl Current {
    pub(crate) fn new(observe: Observe) -> Self {
        let now = Instant::now();
        let ratios = [(); 2].map(|()| [(); 2].map(|()| Mutex::new(TimedRatio::new(CURRENT_BUCKETS, now))));
        Self { counts: Default::default(), ratios, observe }
    }

    pub(crate) fn enter(&self, phase: Phase, kind: Kind, now: Instant) {
        let mut ratio = self.ratios[phase as usize][kind as usize].lock();
        let count = self.counts[phase as usize][kind as usize].fetch_add(1, Ordering::Relaxed) + 1;
        ratio.set(u32::try_from(count).unwrap_or(u32::MAX), now);
        drop(ratio);
        (self.observe)(phase, kind, count);
    }

    pub(crate) fn leave(&self, phase: Phase, kind: Kind, now: Instant) {
        let mut ratio = self.ratios[phase as usize][kind as usize].lock();
        let count = self.counts[phase as usize][kind as usize].fetch_sub(1, Ordering::Relaxed) - 1;
        ratio.set(u32::try_from(count).unwrap_or(u32::MAX), now);
    }

    /// So many of both kinds may run or wait.
    pub(crate) fn set_room(&self, phase: Phase, requests: u32, now: Instant) {
        self.ratios[phase as usize].iter().for_each(|ratio| ratio.lock().set_denominator(requests, now));
    }

    /// How many ran or waited, of those that may.
    pub(crate) fn shown(&self, phase: Phase, kind: Kind, now: Instant) -> Histogram {
        self.ratios[phase as usize][kind as usize].lock().shown(now)
    }

    /// By kind.
    pub(crate) fn now(&self, phase: Phase) -> [usize; 2] {
        self.counts[phase as usize].each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}
