//! Errors of watches.

use crate::error::StoreError;

/// Reason why a subscription ended, or could not start.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WatchError {
    /// The changes since the requested revision are no longer stored.
    #[error("too old resource version: {wanted} ({oldest})")]
    Compacted {
        /// Requested revision.
        wanted: i64,
        /// Oldest revision from which a watch can start.
        oldest: i64,
    },
    /// The subscriber read too slowly: its queue was full and it was cut. A new watch may start at `revision`.
    #[error("the watcher is too slow")]
    Lagged {
        /// Last revision that it received.
        revision: i64,
    },
    /// Past changes could not be read.
    #[error(transparent)]
    Store(StoreError),
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}
