//! Errors of requests without a response.

use std::io;

use portico_kit::dial::http_reason;
use portico_machinery::Status;

use crate::request_body::BoxError;
use crate::stage::Stage;

/// Reason for which there is no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("{message}")]
    Dial { stage: Stage, message: String },
    #[error("{message}")]
    Open { stage: Stage, message: String, failures: u32 },
    #[error("{0}")]
    Http(String),
    /// A filter of this server rejected the request's body with this Status.
    #[error("{0}")]
    Body(Box<Status>),
}

/// Converts the failure of a request's body: a filter rejects it with a Status; a client breaks it off or violates the framing.
pub(super) fn body_error(error: &(dyn std::error::Error + 'static)) -> SendError {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(status) = error.downcast_ref::<Status>() {
            return SendError::Body(Box::new(status.clone()));
        }
        if let Some(error) = error.downcast_ref::<io::Error>()
            && matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData)
        {
            let message = "the request's body is not chunked as HTTP/1.1 wants it";
            return SendError::Body(Box::new(Status::bad_request(message)));
        }
        cause = error.source();
    }
    SendError::Http("the request's body ended before it was complete".to_owned())
}

/// Returns the error of a response that breaks off.
pub(super) fn broken_off(reason: &str) -> BoxError {
    format!("the backend's answer breaks off: {reason}").into()
}

/// Converts an error of HTTP/2.
pub(super) fn from_http2(error: &hyper::Error) -> SendError {
    SendError::Http(http_reason(error))
}
