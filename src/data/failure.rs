//! Errors of the commands that read or write stored data: `backup`, `restore`, `migrate` and `doctor`.

use portico_server::data::{BackupError, CopyError, DataError};

use crate::control_service::NoClient;
use crate::exit_codes;

/// Hint of an error about a folder without a database.
pub(super) const NAME_DATA: &str =
    "name the data folder of a server with --data-dir, or its database with --database-url";

/// Error of a data command. The message is one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(transparent)]
    Copy(#[from] CopyError),
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    NoClient(#[from] NoClient),
    /// The control service of the kubeconfig serves another store.
    #[error("{0}")]
    OtherStore(String),
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
    /// The command line is invalid: message and hint.
    #[error("{0}")]
    Hinted(String, &'static str),
}

impl Failure {
    /// Returns the hint to print below the message, if the error has one.
    pub(super) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoClient(error) => error.hint(),
            Self::Hinted(_, hint) => Some(hint),
            Self::Data(DataError::Missing(_)) | Self::Copy(CopyError::Missing(_)) => Some(NAME_DATA),
            _ => None,
        }
    }

    /// Returns the exit code. Files that flags name count as part of the command line, as for servers.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_)
            | Self::Hinted(..)
            | Self::NoClient(_)
            | Self::Data(DataError::Encryption(_))
            | Self::Copy(CopyError::Future { .. }) => exit_codes::USAGE,
            Self::Backup(_) | Self::Copy(_) | Self::Data(_) | Self::OtherStore(_) => exit_codes::FAILED,
        }
    }
}
