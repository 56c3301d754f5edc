//! Errors of reads.

use crate::key::Key;
use crate::unreadable::Unreadable;

/// Reason why a read failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The revision is older than the history.
    #[error("the requested revision has been compacted: the oldest is {oldest}")]
    Compacted {
        /// The oldest revision that can be read exactly, and watched from.
        oldest: i64,
    },
    /// The revision belongs to an epoch that ended before a restore, and is no longer valid.
    #[error(
        "revision {revision} is lost: the store was restored from revision {after} and continued at revision {until}"
    )]
    Lost {
        /// Requested revision.
        revision: i64,
        /// Last revision of the earlier epoch.
        after: i64,
        /// First revision of the new epoch.
        until: i64,
    },
    /// The revision has not been written yet.
    #[error("the requested revision is in the future: the current is {current}")]
    Future {
        /// The current revision.
        current: i64,
    },
    /// The stored bytes cannot be read.
    #[error("{key}: the stored object cannot be read: {reason}")]
    Corrupt {
        /// Key of the object.
        key: Key,
        /// Reason why the bytes cannot be read.
        reason: String,
    },
    /// The key of the seal is not available now, but may be later: its key service does not respond.
    #[error("unable to transform key {}: {reason}", portico_gostd::strconv::quote(&key.to_string()))]
    Sealed {
        /// Key of the object.
        key: Key,
        reason: String,
    },
    /// The database failed.
    #[error("the database failed: {0}")]
    Unavailable(String),
    /// The store is closed or closing.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Returns the error for an unreadable object that a caller requires.
    pub(crate) fn corrupt(object: &Unreadable) -> Self {
        Self::Corrupt { key: object.key().clone(), reason: object.reason().to_owned() }
    }
}
