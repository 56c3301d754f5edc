//! Limits on concurrent probes.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Concurrent availability probes.
///
/// Limit (Backends): the next probe waits.
const FAST: usize = 128;
/// Concurrent availability probes of slow backends.
///
/// Limit (Backends): the next one waits; slow backends never delay others.
const SLOW: usize = 64;

/// Semaphores for the probes of fast and of slow backends.
pub(super) struct ProbeLimits {
    pub(super) fast: Arc<Semaphore>,
    pub(super) slow: Arc<Semaphore>,
}

impl Default for ProbeLimits {
    fn default() -> Self {
        Self { fast: Arc::new(Semaphore::new(FAST)), slow: Arc::new(Semaphore::new(SLOW)) }
    }
}
