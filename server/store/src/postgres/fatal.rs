//! What goes wrong between the writer and the database.

use crate::key::Key;

/// What this process holds is not what the database does: it must end, and start again from there.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Fatal {
    #[error("the database contains a different store than before")]
    Replaced,
    #[error("the database was restored: a new epoch has begun")]
    NewEpoch,
    #[error("the database has lost published commits: a new epoch begins")]
    Lost,
    #[error("commits of other processes were compacted before this process read them")]
    Behind,
}

/// Why a step of the writer was not done.
#[derive(Debug)]
pub(super) enum Failure {
    Database(sqlx::Error),
    /// What a value is sealed with is not known now, and may be later.
    Sealed {
        key: Key,
        reason: String,
    },
    /// The server only repeats what another one writes.
    Standby,
    Fatal(Fatal),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}
