//! Timeout: when the deadline passes before an answer, this answers; afterwards the response's tail cuts the body.

use http::{Response, StatusCode};

use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;
use crate::metrics::Terminated;
use crate::respond;

/// Upstream encodes the bare struct: kind and apiVersion are missing, and it is JSON whatever was asked for.
const TIMED_OUT: &str = concat!(
    r#"{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","#,
    r#""reason":"Timeout","details":{},"code":504}"#
);

/// See the module.
#[derive(Debug, Default)]
pub struct Timeout;

impl Filter for Timeout {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        let Some(deadline) = x.deadline else { return next.handle(x).await };
        // The timer is armed only when the inner chain has to wait.
        match tokio::time::timeout_at(deadline.into(), next.handle(x)).await {
            Ok(response) => response,
            Err(_) => {
                let mut response = respond::text(StatusCode::GATEWAY_TIMEOUT, TIMED_OUT);
                response.extensions_mut().insert(Terminated);
                response
            }
        }
    }
}
