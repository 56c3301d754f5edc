//! Number of requests that were copied to a mirror, and results of the copies.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Counters of one mirror.
#[derive(Debug, Default)]
pub(crate) struct MirrorCounts {
    sent: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
    failure: Mutex<String>,
}

/// Copies that a facade has sent to one mirror since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorStats {
    /// Copies that got a response of any status.
    pub sent: u64,
    /// Copies that were not sent: too many were in flight, or the body was too long or incomplete.
    pub dropped: u64,
    /// Copies that got no response.
    pub failed: u64,
    /// Error of the last failed copy.
    pub failure: String,
}

impl MirrorCounts {
    pub(crate) fn record_sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn record_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a failed copy; returns true for the first one.
    pub(crate) fn record_failure(&self, why: String) -> bool {
        *self.failure.lock() = why;
        self.failed.fetch_add(1, Ordering::Relaxed) == 0
    }

    pub(crate) fn read(&self) -> MirrorStats {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (sent, dropped, failed) = (count(&self.sent), count(&self.dropped), count(&self.failed));
        MirrorStats { sent, dropped, failed, failure: self.failure.lock().clone() }
    }
}
