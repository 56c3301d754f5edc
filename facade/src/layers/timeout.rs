//! Timeout: responds with 504 if the deadline passes before the response; later, the response's completion cuts the body.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::StatusCode;
use pin_project_lite::pin_project;
use tokio::time;
use tower::Service;

use crate::handler::{Handler, HandlerResult};
use crate::metrics::Terminated;
use crate::request::{Request, RequestView, Response};
use crate::respond;

/// Upstream encodes the bare struct: kind and apiVersion are missing, and it is always JSON.
const TIMEOUT_STATUS: &str = concat!(
    r#"{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","#,
    r#""reason":"Timeout","details":{},"code":504}"#
);

/// Service of the timeout layer.
#[derive(Clone, Debug)]
pub struct Timeout<S> {
    inner: S,
}

impl<S> Timeout<S> {
    /// Wraps `inner`.
    pub fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S: Handler> Service<Request> for Timeout<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = TimeoutFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let deadline = request.record().deadline();
        let response = self.inner.call(request);
        match deadline {
            // The timer is registered only when the inner service has to wait.
            Some(deadline) => {
                TimeoutFuture::Limited { response: time::timeout_at(deadline.into(), response) }
            }
            None => TimeoutFuture::Unlimited { response },
        }
    }
}

pin_project! {
    /// Future of the timeout layer.
    #[project = TimeoutFutureProjection]
    pub enum TimeoutFuture<F> {
        /// A request with a deadline.
        Limited {
            #[pin]
            response: time::Timeout<F>,
        },
        /// A request without a deadline.
        Unlimited {
            #[pin]
            response: F,
        },
    }
}

impl<F: Future<Output = HandlerResult>> Future for TimeoutFuture<F> {
    type Output = HandlerResult;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<HandlerResult> {
        match self.project() {
            TimeoutFutureProjection::Unlimited { response } => response.poll(cx),
            TimeoutFutureProjection::Limited { response } => {
                Poll::Ready(ready!(response.poll(cx)).unwrap_or_else(|_| Ok(timeout_response())))
            }
        }
    }
}

fn timeout_response() -> Response {
    let mut response = respond::text(StatusCode::GATEWAY_TIMEOUT, TIMEOUT_STATUS);
    response.extensions_mut().insert(Terminated);
    response
}
