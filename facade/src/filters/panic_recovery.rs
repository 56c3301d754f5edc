//! PanicRecovery: a panic in a handler is this request's 500 and nobody else's.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use http::{Response, StatusCode};

use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;
use crate::respond;

/// See the module.
#[derive(Debug, Default)]
pub struct PanicRecovery;

impl Filter for PanicRecovery {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        // What a panicking handler leaves in the context is dropped with the request.
        match AssertUnwindSafe(next.handle(x)).catch_unwind().await {
            Ok(response) => response,
            Err(_) => {
                // An inner handler may have taken the request away; then it knows the path already.
                let path = if x.info.path.is_empty() { x.parts.uri.path() } else { &x.info.path };
                tracing::error!(path, audit_id = ?x.audit_id, "a request caused a panic");
                let message = "This request caused apiserver to panic. Look in the logs for details.";
                respond::text(StatusCode::INTERNAL_SERVER_ERROR, message)
            }
        }
    }
}
