//! Errors between the writer and the database.

use crate::key::Key;

/// The state of this process differs from the database: the process must end and restart from the database.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum FatalError {
    #[error("the database contains a different store than before")]
    Replaced,
    #[error("the database was restored: a new epoch has begun")]
    NewEpoch,
    #[error("the database has lost published commits: a new epoch begins")]
    CommitsLost,
    #[error("commits of other processes were compacted before this process read them")]
    CommitsMissed,
}

/// Reason why a step of the writer failed.
#[derive(Debug)]
pub(super) enum WriterFailure {
    Database(sqlx::Error),
    /// The key of a value is not available now, but may be later.
    Sealed {
        key: Key,
        reason: String,
    },
    /// The server is a standby, which replicates another server.
    Standby,
    Fatal(FatalError),
}

impl From<sqlx::Error> for WriterFailure {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}
