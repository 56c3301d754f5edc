//! Why a verb of the client could not be done.

use std::io;

use portico_gostd::os::error_text;

use crate::control_service::{NoClient, refusal};
use crate::documents::Unreadable;

/// One line for people.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    NoClient(#[from] NoClient),
    #[error("{}", refusal(.0))]
    Refused(#[from] tonic::Status),
    /// Of one of several documents.
    #[error("{from}: {}", refusal(.status))]
    RefusedDocument { from: String, status: Box<tonic::Status> },
    #[error(transparent)]
    Document(#[from] Unreadable),
    #[error("{}", error_text(.0))]
    Output(#[from] io::Error),
    /// Of a watch.
    #[error("{0}")]
    Lost(String),
    /// Of a facade.
    #[error("{0}")]
    Facade(String),
    #[error("an answer cannot be read: {0}")]
    Answer(#[from] serde_json::Error),
    #[error("{0}")]
    Usage(String),
}

impl Failure {
    /// Whether whoever reads the output wants no more of it: `portico get ... | head`.
    pub(super) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
