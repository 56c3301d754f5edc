//! PanicRecovery: a panic in a handler becomes a 500 of its request and affects no other request.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{StatusCode, Uri};
use pin_project_lite::pin_project;
use tower::Service;

use crate::handler::{Handler, HandlerResult};
use crate::request::{AuditId, Request, RequestView, Response};
use crate::respond;

/// Service of the panic recovery layer.
#[derive(Clone, Debug)]
pub struct PanicRecovery<S> {
    inner: S,
}

impl<S> PanicRecovery<S> {
    /// Wraps `inner`.
    pub fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S: Handler> Service<Request> for PanicRecovery<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = PanicRecoveryFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let (uri, audit_id) = (request.uri().clone(), AuditId(request.audit_id().clone()));
        // State that a panic leaves inconsistent is dropped with the request: services keep none between requests.
        let response = catch_unwind(AssertUnwindSafe(|| self.inner.call(request))).ok();
        PanicRecoveryFuture { response, uri, audit_id }
    }
}

pin_project! {
    /// Future of the panic recovery layer.
    pub struct PanicRecoveryFuture<F> {
        // `None` if the handler panicked before it returned a future.
        #[pin]
        response: Option<F>,
        uri: Uri,
        audit_id: AuditId,
    }
}

impl<F: Future<Output = HandlerResult>> Future for PanicRecoveryFuture<F> {
    type Output = HandlerResult;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<HandlerResult> {
        let mut this = self.project();
        let polled = this
            .response
            .as_mut()
            .as_pin_mut()
            .and_then(|response| catch_unwind(AssertUnwindSafe(|| response.poll(cx))).ok());
        polled.unwrap_or_else(|| Poll::Ready(Ok(panic_response(this.uri, this.audit_id))))
    }
}

fn panic_response(uri: &Uri, audit_id: &AuditId) -> Response {
    let audit_id = String::from_utf8_lossy(audit_id.0.as_bytes());
    tracing::error!(path = uri.path(), %audit_id, "request handler panicked");
    let message = "This request caused apiserver to panic. Look in the logs for details.";
    respond::text(StatusCode::INTERNAL_SERVER_ERROR, message)
}
