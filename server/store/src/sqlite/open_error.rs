//! Errors of opening a database.

use std::path::PathBuf;

use portico_gostd::os::error_text;
use sqlx::migrate::MigrateError;

use super::failure::reason;

/// Reason why a database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process, or another store of this process, uses the database.
    #[error("{path} is in use by process {pid}")]
    InUse {
        /// Database file.
        path: PathBuf,
        /// ID of the process that uses it, from the lock file; `?` if it is not written yet.
        pid: String,
    },
    /// The database was written by a newer Portico.
    #[error("{path} has schema version {found}, this portico supports up to {known}: use a newer portico")]
    TooNew {
        /// Database file.
        path: PathBuf,
        /// Schema version of the database.
        found: i64,
        /// Newest version that this program supports.
        known: i64,
    },
    /// A file or folder could not be created, locked or protected.
    #[error("{path}: {}", error_text(error))]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        error: std::io::Error,
    },
    /// SQLite rejected the file: not a database, damaged, or not readable.
    #[error("{path}: {}", reason(error))]
    Database {
        /// Database file.
        path: PathBuf,
        /// Error of SQLite.
        error: sqlx::Error,
    },
    /// The database is not the one that was last served from this path.
    #[error(
        "{path} is not the database last served from this path: {reason}. `portico restore --from {path} --data-dir DIR` \
         accepts the database as a new epoch; delete {path} and {path}.mark to start with an empty store"
    )]
    Replaced {
        /// Database file.
        path: PathBuf,
        /// Difference to the expected database.
        reason: String,
    },
    /// A new epoch would begin too close to the maximum revision.
    #[error("{path}: no revisions are left for a new epoch")]
    Exhausted {
        /// Database file.
        path: PathBuf,
    },
    /// The key of a sealed value is not available now: the key service does not respond.
    #[error("{path}: {reason}")]
    Sealed {
        /// Database file.
        path: PathBuf,
        /// Value and reason.
        reason: String,
    },
    /// A migration failed.
    #[error("{path}: {error}")]
    Migration {
        /// Database file.
        path: PathBuf,
        /// Migration and reason.
        error: Box<MigrateError>,
    },
}
