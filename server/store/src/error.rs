//! Why the store does not answer.

use crate::key::Key;
use crate::unreadable::Unreadable;

/// Why a read failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The revision is older than what is kept.
    #[error("the requested revision has been compacted: the oldest is {oldest}")]
    Compacted {
        /// The oldest revision that can be read exactly, and watched from.
        oldest: i64,
    },
    /// The revision was one of an epoch that ended before the store was restored, and is nobody's now.
    #[error(
        "revision {revision} is lost: the store was restored from revision {after} and continued at revision {until}"
    )]
    Lost {
        /// What was asked for.
        revision: i64,
        /// The last revision of before.
        after: i64,
        /// The first one of the new epoch.
        until: i64,
    },
    /// The revision has not been written yet.
    #[error("the requested revision is in the future: the current is {current}")]
    Future {
        /// The current revision.
        current: i64,
    },
    /// Stored bytes that cannot be read.
    #[error("{key}: the stored object cannot be read: {reason}")]
    Corrupt {
        /// Which object.
        key: Key,
        /// What is wrong with it.
        reason: String,
    },
    /// What the value is sealed with is not known now, and may be later: its key service does not answer.
    #[error("unable to transform key {}: {reason}", portico_gostd::strconv::quote(&key.to_string()))]
    Sealed {
        /// Which object.
        key: Key,
        /// Why.
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
    /// What an object that cannot be read is to a caller who cannot go on without it.
    pub(crate) fn corrupt(object: &Unreadable) -> Self {
        Self::Corrupt { key: object.key().clone(), reason: object.reason().to_owned() }
    }
}
