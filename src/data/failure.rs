//! Why a verb about data was not done; one line for people.

use portico_server::data::{BackupError, CopyError, DataError};

use crate::control_service::NoClient;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(transparent)]
    Copy(#[from] CopyError),
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Unreachable(#[from] NoClient),
    /// What was asked for cannot be done so.
    #[error("{0}")]
    Asked(String),
}
