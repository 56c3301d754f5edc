//! How many requests run and how many wait, by kind: what `apiserver_current_inflight_requests` shows.

use std::sync::atomic::{AtomicUsize, Ordering};

use portico_machinery::RequestInfo;

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
    observe: Observe,
}

impl Current {
    pub(crate) fn new(observe: Observe) -> Self {
        Self { counts: Default::default(), observe }
    }

    pub(crate) fn enter(&self, phase: Phase, kind: Kind) {
        let now = self.counts[phase as usize][kind as usize].fetch_add(1, Ordering::Relaxed) + 1;
        (self.observe)(phase, kind, now);
    }

    pub(crate) fn leave(&self, phase: Phase, kind: Kind) {
        self.counts[phase as usize][kind as usize].fetch_sub(1, Ordering::Relaxed);
    }

    /// By kind.
    pub(crate) fn now(&self, phase: Phase) -> [usize; 2] {
        self.counts[phase as usize].each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}
