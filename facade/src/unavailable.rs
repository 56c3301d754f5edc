//! The refusal of requests that need the control service while it is unavailable.

use portico_machinery::Status;
use portico_machinery::status::{Cause, Details, Reason};

/// Reason of the cause in the Status if no control service is available.
pub const CONTROL_SERVICE_UNAVAILABLE: &str = "ControlServiceUnavailable";

/// Creates the 503 for an unavailable control service. `read_only` requests may be retried.
pub fn unavailable(read_only: bool, cause: &str) -> Status {
    let message = "the control service is not available; aggregated APIs continue to be served";
    Status::failure(Reason::ServiceUnavailable, message)
        // Clients retry if this is set; a write may have been applied before the connection broke.
        .with_details(Details { retry_after_seconds: u32::from(read_only), ..Details::default() })
        .with_cause(Cause {
            reason: CONTROL_SERVICE_UNAVAILABLE.to_owned(),
            message: cause.to_owned(),
            field: String::new(),
        })
}
