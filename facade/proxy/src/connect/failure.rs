//! Failures of a connection as upstream's messages, which differ between `log`, upgrades and `proxy`.

use portico_machinery::{Reason, Status};

use crate::refusal::Refusal;
use crate::stage::Stage;
use crate::transport::SendError;

/// 500 without a reason: what upstream answers with errors that it has no Status for.
pub(super) fn unknown(message: impl Into<String>) -> Box<Status> {
    Box::new(Status::failure(Reason::Unknown, message))
}

/// Of a proxied request.
pub(super) fn of_proxy(error: SendError) -> Box<Status> {
    match Refusal::from(error) {
        Refusal::Body(status) => status,
        refusal => Box::new(Status::unavailable(refusal.to_string())),
    }
}

/// Of a stream.
pub(super) fn of_upgrade(refusal: Refusal) -> Box<Status> {
    match refusal {
        Refusal::Body(status) => status,
        Refusal::NotUpgraded(_) => unknown(refusal.to_string()),
        refusal => unknown(format!("error dialing backend: {}", bare(&refusal))),
    }
}

/// Of a log, which upstream asks for like any client: `url` is what was asked for.
pub(super) fn of_log(url: &str, error: SendError) -> Box<Status> {
    unknown(format!("Get {url:?}: {}", bare(&error.into())))
}

/// Of a request of our own, without the prefix that says what was asked.
pub(super) fn of_request(error: SendError) -> String {
    bare(&error.into())
}

/// There are too many.
pub(super) fn busy(limit: usize) -> Box<Status> {
    Box::new(Status::unavailable(Refusal::Busy(limit).to_string()))
}

/// A protocol that nobody asked for.
pub(super) fn unasked() -> SendError {
    let message = "the backend switched the protocol without being asked".to_owned();
    SendError::Dial { stage: Stage::Http, message }
}

/// A refusal's message without its prefix.
fn bare(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Unreachable { message, .. } => message.clone(),
        Refusal::CircuitOpen { message, failures, .. } => {
            format!("{message} (next attempt deferred after {failures} failures)")
        }
        other => other.to_string(),
    }
}
