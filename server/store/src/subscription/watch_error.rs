//! How a watch ends.

use crate::error::StoreError;

/// Why a subscription ended, or could not start.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WatchError {
    /// The changes since the wanted revision are no longer kept.
    #[error("too old resource version: {wanted} ({oldest})")]
    Compacted {
        /// The revision asked for.
        wanted: i64,
        /// The oldest revision that a watch may start from.
        oldest: i64,
    },
    /// The subscriber read too slowly: its queue was full and it was cut. It may watch again from `revision`.
    #[error("the watcher is too slow")]
    Lagged {
        /// The last revision that it got.
        revision: i64,
    },
    /// Past changes could not be read.
    #[error(transparent)]
    Store(StoreError),
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}
