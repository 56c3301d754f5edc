//! Idle timeout of a connection.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// Time of the last transfer on a connection, with an idle timeout.
pub(crate) struct Activity {
    last: Mutex<Instant>,
    limit: Duration,
}

impl Activity {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { last: Mutex::new(Instant::now()), limit }
    }

    pub(crate) fn record(&self) {
        *self.last.lock() = Instant::now();
    }

    /// Returns when no transfer was recorded for the idle timeout.
    pub(crate) async fn wait_idle(&self) {
        loop {
            let due = *self.last.lock() + self.limit;
            if due <= Instant::now() {
                return;
            }
            sleep_until(due).await;
        }
    }
}
