//! Limits of the number of requests in flight: one for reads and one for all other requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use portico_flow::{RequestKind, RequestPhase};

use crate::metrics::RequestMetrics;

/// Limiter of requests in flight. Clones share its state.
#[derive(Clone)]
pub struct InFlight {
    inner: Arc<Inner>,
}

struct Inner {
    /// Limits of reads and of other requests; 0 means unlimited.
    limits: [usize; 2],
    counts: [AtomicUsize; 2],
    metrics: Arc<RequestMetrics>,
}

/// Right of one request to run; dropping it decrements the count.
pub struct Permit {
    inner: Arc<Inner>,
    kind: RequestKind,
}

impl std::fmt::Debug for Permit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Permit({:?})", self.kind)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.inner.counts[self.kind as usize].fetch_sub(1, Ordering::AcqRel);
    }
}

impl InFlight {
    /// Takes `--max-requests-inflight` and `--max-mutating-requests-inflight`; 0 means unlimited.
    #[must_use]
    pub fn new(reads: usize, mutations: usize, metrics: Arc<RequestMetrics>) -> Self {
        let counts = [AtomicUsize::new(0), AtomicUsize::new(0)];
        Self { inner: Arc::new(Inner { limits: [reads, mutations], counts, metrics }) }
    }

    /// Numbers of reads and of other requests in flight.
    #[must_use]
    pub fn counts(&self) -> [usize; 2] {
        [0, 1].map(|at: usize| self.inner.counts[at].load(Ordering::Relaxed))
    }

    /// Admits a request of this kind if `always` or the limit is not reached.
    #[must_use]
    pub fn admit(&self, kind: RequestKind, always: bool) -> Option<Permit> {
        let limit = self.inner.limits[kind as usize];
        let count = self.inner.counts[kind as usize].fetch_add(1, Ordering::AcqRel) + 1;
        // Dropping the permit decrements the count again.
        let permit = Permit { inner: self.inner.clone(), kind };
        if limit != 0 && count > limit && !always {
            return None;
        }
        self.inner.metrics.record_concurrency(RequestPhase::Executing, kind, count);
        Some(permit)
    }
}
