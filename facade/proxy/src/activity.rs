//! When bytes last passed on a connection of its own.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// See the module.
pub(crate) struct Activity {
    last: Mutex<Instant>,
    limit: Duration,
}

impl Activity {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { last: Mutex::new(Instant::now()), limit }
    }

    pub(crate) fn seen(&self) {
        *self.last.lock() = Instant::now();
    }

    /// Returns once nothing was seen for as long as the limit.
    pub(crate) async fn idle(&self) {
        loop {
            let due = *self.last.lock() + self.limit;
            if due <= Instant::now() {
                return;
            }
            sleep_until(due).await;
        }
    }
}
