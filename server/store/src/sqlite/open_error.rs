//! Why a database cannot be opened.

use std::path::PathBuf;

use portico_gostd::os::error_text;
use sqlx::migrate::MigrateError;

use super::failure::reason;

/// Why a database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process, or another store of this one, holds it.
    #[error("{path} is in use by process {pid}")]
    InUse {
        /// The database file.
        path: PathBuf,
        /// The process that holds it, as it noted itself; `?` if it has not yet.
        pid: String,
    },
    /// It was written by a newer Portico.
    #[error("{path} has schema version {found}, this portico supports up to {known}: use a newer portico")]
    TooNew {
        /// The database file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// A file or folder could not be made, locked or protected.
    #[error("{path}: {}", error_text(error))]
    File {
        /// Which one.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// SQLite refused it: no database, damaged, not readable.
    #[error("{path}: {}", reason(error))]
    Database {
        /// The database file.
        path: PathBuf,
        /// The error of SQLite.
        error: sqlx::Error,
    },
    /// It is not the database that was served here last.
    #[error(
        "{path} is not the database last served from this path: {reason}. `portico restore --from {path} --data-dir DIR` \
         accepts the database as a new epoch; delete {path} and {path}.mark to start with an empty store"
    )]
    Replaced {
        /// The database file.
        path: PathBuf,
        /// By what it differs.
        reason: String,
    },
    /// A new epoch would begin too near to the end of the revisions.
    #[error("{path}: no revisions are left for a new epoch")]
    Exhausted {
        /// The database file.
        path: PathBuf,
    },
    /// What values are sealed with is not known now: the key service does not answer.
    #[error("{path}: {reason}")]
    Sealed {
        /// The database file.
        path: PathBuf,
        /// Which value, and why.
        reason: String,
    },
    /// A migration failed.
    #[error("{path}: {error}")]
    Migration {
        /// The database file.
        path: PathBuf,
        /// Which migration, and why.
        error: Box<MigrateError>,
    },
}
