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
    /// The command cannot be carried out as given.
    #[error("{0}")]
    Request(String),
    /// The command cannot be carried out at this location; the second part is advice.
    #[error("{0}")]
    Unsupported(&'static str, &'static str),
    /// A flag that applies to a server of a kubeconfig, without a kubeconfig.
    #[error("{0}: --kubeconfig is missing")]
    WithoutKubeconfig(&'static str),
    /// Flags or variables that exclude each other.
    #[error("{0}")]
    Usage(String),
}

impl Failure {
    /// Advice to the user, if any.
    pub(super) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoClient(error) => error.hint(),
            Self::Unsupported(_, hint) => Some(hint),
            Self::WithoutKubeconfig(_) => {
                Some("--kubeconfig DIR/admin.kubeconfig names the control service of a data folder")
            }
            Self::Usage(_) => Some("name one: --data-dir, --database-url, --etcd-servers or --kubeconfig"),
            _ => None,
        }
    }

    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::WithoutKubeconfig(_) => exit_codes::USAGE,
            _ => exit_codes::FAILED,
        }
    }
}
