//! Errors of commands about stored data.

use portico_server::data::{BackupError, CopyError, DataError};

use crate::control_service::NoClient;
use crate::exit_codes;

/// Error of a command, in one line.
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
    /// The command line is invalid; the second part is advice.
    #[error("{0}")]
    Hinted(String, &'static str),
}

impl Failure {
    /// Advice to the user, if any.
    pub(super) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoClient(error) => error.hint(),
            Self::Hinted(_, hint) => Some(hint),
            _ => None,
        }
    }

    /// The exit code: files that flags name are part of the command line, as for servers.
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
