//! Why a patch was refused, and the Status that says so.

use portico_machinery::Status;
use portico_machinery::status::{Details, Reason};

use super::limits::MAX_OPERATIONS;

/// A patch that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself cannot be read, or uses a directive wrongly: 400.
    #[error("{0}")]
    Malformed(String),
    /// Directives or lists that cannot be merged: 500, for upstream does not say whose fault it is.
    #[error("{0}")]
    Refused(String),
    /// Too many operations in a JSON patch: 413.
    #[error(
        "Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}"
    )]
    TooManyOperations(usize),
    /// An operation cannot be carried out: 422. Upstream does not say which; the cause here does.
    #[error("the server rejected our request due to an error in our request")]
    Failed(String),
    /// A `test` does not hold: 422.
    #[error("the server rejected our request due to an error in our request")]
    TestFailed(String),
}

impl PatchError {
    /// The answer.
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
