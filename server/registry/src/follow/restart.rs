//! Attempts to restart a watch of the store after it failed.

use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_store::{Store, StoreError, WatchError};

/// Reason for a failed attempt.
#[derive(Debug, thiserror::Error)]
pub(super) enum RestartFailure {
    #[error(transparent)]
    Read(#[from] StoreError),
    #[error(transparent)]
    Watch(#[from] WatchError),
}

impl RestartFailure {
    fn is_closed(&self) -> bool {
        matches!(self, Self::Read(StoreError::Closed) | Self::Watch(WatchError::Closed))
    }
}

/// Attempts to restart a watch, with increasing intervals.
pub(super) struct RestartAttempts {
    backoff: Backoff,
}

impl RestartAttempts {
    pub(super) fn new() -> Self {
        Self { backoff: Backoff::new(BackoffPolicy::RECONNECT) }
    }

    /// Waits for the next attempt after a failed one; `None` if the store is closed.
    pub(super) async fn wait_after(&mut self, failure: &RestartFailure, store: &dyn Store) -> Option<()> {
        if failure.is_closed() {
            return None;
        }
        tracing::warn!(error = %failure, "cannot restart a watch of the store, retrying");
        tokio::select! {
            () = tokio::time::sleep(self.backoff.next_wait()) => Some(()),
            // No revision is that high, so this ends only when the store is closed.
            _ = store.wait_for_revision(i64::MAX) => None,
        }
    }
}
