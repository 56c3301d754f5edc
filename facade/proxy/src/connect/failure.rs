//! Upstream's error messages for failed connections, which differ between `log`, upgrades and `proxy`.

use portico_machinery::{Reason, Status};

use crate::refusal::Refusal;
use crate::stage::Stage;
use crate::transport::SendError;

/// Returns 500 without a reason, which upstream uses for errors that have no Status.
pub(super) fn unknown(message: impl Into<String>) -> Box<Status> {
    Box::new(Status::failure(Reason::Unknown, message))
}

/// Returns the Status of a failed proxy request.
pub(super) fn of_proxy(error: SendError) -> Box<Status> {
    match Refusal::from(error) {
        Refusal::Body(status) => status,
        refusal => Box::new(Status::unavailable(refusal.to_string())),
    }
}

/// Returns the Status of a failed upgrade.
pub(super) fn of_upgrade(refusal: Refusal) -> Box<Status> {
    match refusal {
        Refusal::Body(status) => status,
        Refusal::NotUpgraded(_) => unknown(refusal.to_string()),
        refusal => unknown(format!("error dialing backend: {}", unprefixed(&refusal))),
    }
}

/// Returns the Status of a failed log request, with the error text of an HTTP client for `url`.
pub(super) fn of_log(url: &str, error: SendError) -> Box<Status> {
    unknown(format!("Get {url:?}: {}", unprefixed(&error.into())))
}

/// Returns the error of a request that the proxy originated, without a prefix that describes the request.
pub(super) fn of_request(error: SendError) -> String {
    unprefixed(&error.into())
}

/// Returns the Status for a backend that has reached its limit of requests.
pub(super) fn busy(limit: usize) -> Box<Status> {
    Box::new(Status::unavailable(Refusal::Busy(limit).to_string()))
}

/// Returns the error for a backend that switches the protocol without a request for it.
pub(super) fn unexpected_switch() -> SendError {
    let message = "the backend switched protocols without an upgrade request".to_owned();
    SendError::Dial { stage: Stage::Http, message }
}

/// Returns a refusal's message without its prefix.
fn unprefixed(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Unreachable { message, .. } => message.clone(),
        Refusal::CircuitOpen { message, failures, .. } => {
            format!("{message} (next attempt deferred after {failures} failures)")
        }
        other => other.to_string(),
    }
}
