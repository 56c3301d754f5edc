//! Errors of client commands.

use std::io;

use portico_gostd::os::error_text;
use tonic::Code;

use crate::control_service::{NoClient, describe, is_unreachable};
use crate::documents::DocumentError;
use crate::exit::is_closed_pipe;

/// Error of a client command. The message is one line.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    NoClient(#[from] NoClient),
    #[error("{}", describe(.0))]
    Refused(#[from] tonic::Status),
    /// The server refused one of several documents.
    #[error("{from}: {}", describe(.status))]
    RefusedDocument { from: String, status: Box<tonic::Status> },
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error("{}", error_text(.0))]
    Output(#[from] io::Error),
    /// The control service stopped answering a watch.
    #[error("{0}")]
    Lost(String),
    /// The request to a facade failed.
    #[error("{0}")]
    Facade(String),
    #[error("the response cannot be read: {0}")]
    InvalidResponse(#[from] serde_json::Error),
    #[error("{0}")]
    Usage(String),
    /// The command line cannot be executed: message and hint.
    #[error("{0}")]
    Hinted(String, &'static str),
}

impl Failure {
    /// Returns true if the reader of the output closed the pipe.
    pub(super) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if is_closed_pipe(error))
    }

    /// Returns the hint to print below the message, if the error has one.
    pub(super) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoClient(error) => error.hint(),
            Self::Refused(status) if is_unreachable(status) => Some(NoClient::OTHER_SERVER),
            Self::Lost(_) => Some(NoClient::OTHER_SERVER),
            Self::RefusedDocument { status, .. } if status.message().contains("conflict with") => {
                Some("--force-conflicts takes over these fields")
            }
            Self::Refused(status) if status.code() == Code::PermissionDenied => {
                Some("the user of the kubeconfig needs this permission; `--context` selects another user")
            }
            Self::Hinted(_, hint) => Some(hint),
            _ => None,
        }
    }
}
