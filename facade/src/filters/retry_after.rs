//! RetryAfter (`--shutdown-send-retry-after`): once new requests are refused, this says so and asks to come back.

use http::header::{CONNECTION, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use portico_kit::lifecycle::Signal;

use super::{Filter, Handler, exempt_from_shutdown};
use crate::body::Body;
use crate::context::RequestContext;
use crate::respond;

/// See the module.
#[derive(Debug)]
pub struct RetryAfter {
    /// `NotAcceptingNewRequest`
    pub not_accepting: Signal,
}

impl Filter for RetryAfter {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        if !self.not_accepting.is_signaled() || exempt_from_shutdown(x) {
            return next.handle(x).await;
        }
        let message = "The apiserver is shutting down, please try again later.";
        let mut response = respond::text(StatusCode::TOO_MANY_REQUESTS, message);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
        x.connection.close_after(x.is_http2(), &mut response);
        debug_assert!(x.is_http2() || response.headers().contains_key(CONNECTION));
        response
    }
}
