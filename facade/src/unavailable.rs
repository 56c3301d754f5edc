//! The refusal of what only the control service can answer, while it is away.

use portico_machinery::Status;
use portico_machinery::status::{Cause, Details, Reason};

/// The cause's reason when there is no control service to ask.
pub const CONTROL_SERVICE_UNAVAILABLE: &str = "ControlServiceUnavailable";

/// 503: there is no control service to ask. `read_only` requests may be repeated.
pub fn unavailable(read_only: bool, why: &str) -> Status {
    let message = "the control service is not available; aggregated APIs continue to be served";
    Status::failure(Reason::ServiceUnavailable, message)
        // Clients repeat what carries this; a write may have been done before the connection broke.
        .with_details(Details { retry_after_seconds: u32::from(read_only), ..Details::default() })
        .with_cause(Cause {
            reason: CONTROL_SERVICE_UNAVAILABLE.to_owned(),
            message: why.to_owned(),
            field: String::new(),
        })
}
