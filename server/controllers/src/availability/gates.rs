//! How many probes are under way at a time.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// How many probes may run at once.
pub(super) struct Gates {
    pub(super) fast: Arc<Semaphore>,
    pub(super) slow: Arc<Semaphore>,
}

impl Default for Gates {
    fn default() -> Self {
        Self { fast: Arc::new(Semaphore::new(128)), slow: Arc::new(Semaphore::new(64)) }
    }
}
