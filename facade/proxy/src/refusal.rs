//! Reasons for which a request is not served, as a Status.
//!
//! Codes are upstream's; bodies are a Status where upstream writes plain text. `retryAfterSeconds` is only in the details:
//! client-go repeats a 5xx with a `Retry-After` header up to ten times, which would make kubectl hang on every dead backend.

use http::StatusCode;
use portico_machinery::route::Route;
use portico_machinery::status::{Cause, Details, Reason, Status};

use crate::stage::Stage;

/// Reason for which a request was not served.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Refusal {
    /// The Available condition is not true.
    #[error("service unavailable: {reason}: {message}")]
    Unavailable {
        /// Reason of the condition.
        reason: String,
        /// Message of the condition.
        message: String,
    },
    /// The availability of the backend has not been checked yet.
    #[error("service unavailable: the availability check has not completed yet")]
    Unknown,
    /// The transport cannot be built.
    #[error("{0}")]
    Transport(String),
    /// The handler chain did not authenticate the caller.
    #[error("missing user")]
    MissingUser,
    /// An attribute of the caller is not a valid header value.
    #[error("the caller's {0} cannot be sent as a header")]
    Identity(&'static str),
    /// The Service does not resolve.
    #[error("service unavailable: {reason}: {message}")]
    Unresolved {
        /// Reason as in the condition.
        reason: String,
        /// Error message.
        message: String,
    },
    /// The route has no backend: the caller should have used another handler.
    #[error("no backend")]
    NoBackend,
    /// The backend was not reached, or the exchange failed.
    #[error("error trying to reach service: {message}")]
    Unreachable {
        /// The stage that failed.
        stage: Stage,
        /// Error message.
        message: String,
    },
    /// Every target's circuit is open.
    #[error("error trying to reach service: {message} (next attempt deferred after {failures} failures)")]
    CircuitOpen {
        /// The stage that failed last.
        stage: Stage,
        /// The last error.
        message: String,
        /// Consecutive failures.
        failures: u32,
    },
    /// [`crate::Limits::max_requests_per_backend`] is reached.
    #[error("error trying to reach service: the limit of {0} concurrent requests to this backend is reached")]
    Busy(usize),
    /// The deadline passed before the backend responded. `discovery` distinguishes the 5 s of discovery (503) from the request's
    /// own deadline (504).
    #[error("{}", if *discovery { "error trying to reach service: context deadline exceeded" } else { "request did not complete within the allotted timeout" })]
    Deadline {
        /// True for the discovery deadline.
        discovery: bool,
    },
    /// 3xx with a Location.
    #[error("the backend attempted to redirect this request, which is not permitted")]
    Redirect,
    /// A response below 400 other than 101 to an upgrade.
    #[error("invalid upgrade response: status code {0}")]
    NotUpgraded(u16),
    /// An upgrade that is not forwarded.
    #[error("{0}")]
    UpgradeRefused(String),
    /// A filter of this server rejected the request's body.
    #[error("{0}")]
    Body(Box<Status>),
    /// The request cannot be forwarded.
    #[error("{0}")]
    BadRequest(String),
}

impl Refusal {
    /// Returns the Status of this refusal; `route` names the APIService in its details.
    pub fn status(&self, route: &Route) -> Status {
        let message = self.to_string();
        let status = match self {
            Self::Transport(_) | Self::MissingUser | Self::Identity(_) => {
                Status::failure(Reason::InternalError, message)
            }
            Self::NoBackend => return Status::route_not_found(),
            Self::Body(status) => return status.as_ref().clone(),
            Self::UpgradeRefused(_) | Self::BadRequest(_) => return Status::bad_request(message),
            Self::Deadline { discovery: false } => return Status::timeout(message),
            Self::Redirect => {
                let mut status = Status::failure(Reason::InternalError, message);
                status.code = StatusCode::BAD_GATEWAY.as_u16();
                status
            }
            _ => Status::unavailable(message),
        };
        let cause = self.cause();
        status.with_details(Details {
            name: route.name.clone(),
            group: "apiregistration.k8s.io".to_owned(),
            kind: "apiservices".to_owned(),
            causes: cause.into_iter().collect(),
            retry_after_seconds: self.retry_after(),
            ..Details::default()
        })
    }

    /// Returns the stage that failed, if there is one.
    pub fn stage(&self) -> Option<Stage> {
        match self {
            Self::Unreachable { stage, .. } | Self::CircuitOpen { stage, .. } => Some(*stage),
            Self::Unresolved { .. } => Some(Stage::Resolve),
            Self::Deadline { .. } | Self::Redirect | Self::NotUpgraded(_) => Some(Stage::Http),
            _ => None,
        }
    }

    /// Returns the stage of the request trace at which the refusal occurs.
    pub(crate) fn trace_stage(&self) -> &'static str {
        match self {
            Self::NoBackend => "router",
            Self::Unavailable { .. } | Self::Unknown => "available",
            Self::Busy(_) => "backend",
            Self::Transport(_) => "tls",
            Self::MissingUser
            | Self::Identity(_)
            | Self::UpgradeRefused(_)
            | Self::Body(_)
            | Self::BadRequest(_) => "request",
            Self::Redirect | Self::NotUpgraded(_) | Self::Deadline { .. } => "response",
            Self::Unresolved { .. } | Self::Unreachable { .. } | Self::CircuitOpen { .. } => {
                self.stage().map_or("backend", Stage::as_str)
            }
        }
    }

    /// Returns upstream's plain text for this refusal; `None` if upstream writes a Status.
    pub(crate) fn plain_text(&self) -> Option<String> {
        match self {
            Self::Unavailable { .. } | Self::Unknown | Self::Unresolved { .. } => {
                Some("service unavailable\n".to_owned())
            }
            Self::Redirect => Some(self.to_string()),
            Self::Transport(_)
            | Self::MissingUser
            | Self::Unreachable { .. }
            | Self::CircuitOpen { .. }
            | Self::Busy(_)
            | Self::Deadline { discovery: true }
            | Self::NotUpgraded(_) => Some(format!("{self}\n")),
            _ => None,
        }
    }

    fn cause(&self) -> Option<Cause> {
        let (reason, message) = match self {
            Self::Unavailable { reason, message } => (reason.clone(), message.clone()),
            Self::Unresolved { reason, message } => (reason.clone(), format!("resolve: {message}")),
            Self::Unreachable { stage, message } => {
                (reason_of(*stage), format!("{}: {message}", stage.as_str()))
            }
            Self::CircuitOpen { stage, message, .. } => {
                ("CircuitOpen".to_owned(), format!("{}: {message}", stage.as_str()))
            }
            Self::Busy(_) => ("TooManyRequests".to_owned(), self.to_string()),
            Self::Deadline { .. } => {
                ("DeadlineExceeded".to_owned(), "http: context deadline exceeded".to_owned())
            }
            _ => return None,
        };
        Some(Cause { reason, message, field: String::new() })
    }

    fn retry_after(&self) -> u32 {
        match self {
            Self::Unavailable { .. } | Self::Unknown | Self::Unresolved { .. } => 5,
            Self::Unreachable { .. } | Self::CircuitOpen { .. } | Self::Busy(_) => 1,
            Self::Deadline { discovery: true } => 1,
            _ => 0,
        }
    }
}

fn reason_of(stage: Stage) -> String {
    match stage {
        Stage::Resolve => "ResolveFailed",
        Stage::Dial => "DialFailed",
        Stage::Tls => "TLSFailed",
        Stage::Http => "HTTPFailed",
    }
    .to_owned()
}
