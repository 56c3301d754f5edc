//! WaitGroup: counts short requests, so that a drain can wait for the last one, and refuses late ones.

use http::header::{HeaderValue, X_CONTENT_TYPE_OPTIONS};
use portico_machinery::Status;
use portico_machinery::status::Details;
use tower_http::validate_request::ValidateRequest;

use super::is_exempt_from_shutdown;
use crate::body::Body;
use crate::request::{Request, RequestView, Response};
use crate::respond;
use crate::wait_group::WaitGroup;

/// Layer that counts short requests.
#[derive(Clone, Debug)]
pub struct CountShortRequests {
    /// The group of short requests.
    pub group: WaitGroup,
}

impl ValidateRequest<Body> for CountShortRequests {
    type ResponseBody = Body;

    fn validate(&mut self, request: &mut Request) -> Result<(), Response> {
        if request.target().long_running {
            return Ok(());
        }
        match self.group.enter() {
            Some(token) => {
                let _ = request.record().wait_group.set(token);
                Ok(())
            }
            None if is_exempt_from_shutdown(request) => Ok(()),
            None => Err(shutting_down(request)),
        }
    }
}

/// Upstream's 503 for requests that arrive during a shutdown.
pub(super) fn shutting_down(request: &Request) -> Response {
    let status = Status::unavailable("apiserver is shutting down")
        .with_details(Details { retry_after_seconds: 1, ..Details::default() });
    let mut response = respond::status(request, &status);
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
