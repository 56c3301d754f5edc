//! Patch errors and their Status responses.

use portico_machinery::Status;
use portico_machinery::status::{Details, Reason};

use super::limits::MAX_OPERATIONS;

/// Error for a patch that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// Unreadable patch, or invalid use of a directive: 400.
    #[error("{0}")]
    Malformed(String),
    /// Directives or lists that cannot be merged: 500, because upstream does not attribute the error to the client.
    #[error("{0}")]
    Refused(String),
    /// Too many operations in a JSON patch: 413.
    #[error(
        "Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}"
    )]
    TooManyOperations(usize),
    /// Operation that cannot be executed: 422. Upstream does not include the cause; the Status of this error does.
    #[error("the server rejected our request due to an error in our request")]
    Failed(String),
    /// Failed `test` operation: 422.
    #[error("the server rejected our request due to an error in our request")]
    TestFailed(String),
}

impl PatchError {
    /// Returns the response.
    #[must_use]
    pub fn status(&self) -> Status {
        match self {
            Self::Malformed(_) => Status::bad_request(self.to_string()),
            Self::Refused(_) => Status::failure(Reason::Unknown, self.to_string()),
            Self::TooManyOperations(_) => Status::failure(Reason::RequestEntityTooLarge, self.to_string()),
            Self::Failed(_) | Self::TestFailed(_) => {
                Status::failure(Reason::Invalid, self.to_string()).with_details(Details::default())
            }
        }
    }
}
