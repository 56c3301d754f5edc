//! RetryAfter (`--shutdown-send-retry-after`): refuses new requests during a shutdown with 429 and `Retry-After`.

use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};
use portico_kit::lifecycle::Signal;
use tower_http::validate_request::ValidateRequest;

use super::is_exempt_from_shutdown;
use crate::body::Body;
use crate::request::{Request, RequestView, Response};
use crate::respond;

/// Layer that refuses requests during a shutdown.
#[derive(Clone, Debug)]
pub struct RetryAfter {
    /// `NotAcceptingNewRequest`
    pub not_accepting: Signal,
}

impl ValidateRequest<Body> for RetryAfter {
    type ResponseBody = Body;

    fn validate(&mut self, request: &mut Request) -> Result<(), Response> {
        if !self.not_accepting.is_signaled() || is_exempt_from_shutdown(request) {
            return Ok(());
        }
        let message = "The apiserver is shutting down, please try again later.";
        let mut response = respond::text(StatusCode::TOO_MANY_REQUESTS, message);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
        request.connection().close_after(request.is_http2(), &mut response);
        Err(response)
    }
}
