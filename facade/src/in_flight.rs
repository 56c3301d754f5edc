//! How many requests are answered at a time: two limits, for reads and for everything else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use portico_flow::{Kind, Phase};

use crate::metrics::RequestMetrics;

/// The limiter. Clones share it.
#[derive(Clone)]
pub struct InFlight {
    inner: Arc<Inner>,
}

struct Inner {
    /// 0 is unlimited.
    limits: [usize; 2],
    now: [AtomicUsize; 2],
    metrics: Arc<RequestMetrics>,
}

/// A place in flight, given back when dropped.
pub struct Permit {
    inner: Arc<Inner>,
    kind: Kind,
}

impl std::fmt::Debug for Permit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Permit({:?})", self.kind)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.inner.now[self.kind as usize].fetch_sub(1, Ordering::AcqRel);
    }
}

impl InFlight {
    /// `--max-requests-inflight` and `--max-mutating-requests-inflight`; 0 is unlimited.
    #[must_use]
    pub fn new(reads: usize, mutations: usize, metrics: Arc<RequestMetrics>) -> Self {
        let now = [AtomicUsize::new(0), AtomicUsize::new(0)];
        Self { inner: Arc::new(Inner { limits: [reads, mutations], now, metrics }) }
    }

    /// How many reads and others are in flight.
    #[must_use]
    pub fn now(&self) -> [usize; 2] {
        [0, 1].map(|at: usize| self.inner.now[at].load(Ordering::Relaxed))
    }

    /// A place for a request of this class, `always` or while there is room.
    #[must_use]
    pub fn admit(&self, kind: Kind, always: bool) -> Option<Permit> {
        let limit = self.inner.limits[kind as usize];
        let now = self.inner.now[kind as usize].fetch_add(1, Ordering::AcqRel) + 1;
        // Dropping the permit takes the count back.
        let permit = Permit { inner: self.inner.clone(), kind };
        if limit != 0 && now > limit && !always {
            return None;
        }
        self.inner.metrics.note(Phase::Executing, kind, now);
        Some(permit)
    }
}
