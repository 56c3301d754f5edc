//! Errors of commands about definitions.

use std::io;

use portico_gostd::os::error_text;
use tonic::Status;

use crate::control_service::{NoClient, describe, is_unreachable};
use crate::documents::Unreadable;

/// Error of a check, in one line.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("the files contain no CustomResourceDefinition")]
    NoDefinition,
    #[error(transparent)]
    NoClient(#[from] NoClient),
    #[error(transparent)]
    Document(#[from] Unreadable),
    #[error("{from}: {}", describe(.status))]
    Refused { from: String, status: Box<Status> },
    #[error("{}", error_text(.0))]
    Output(#[from] io::Error),
}

impl Failure {
    /// Advice to the user, if any.
    pub(super) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoClient(error) => error.hint(),
            Self::Refused { status, .. } if is_unreachable(status) => Some(NoClient::OTHER_SERVER),
            _ => None,
        }
    }
}
