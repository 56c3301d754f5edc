//! Tracing layer: continues the trace of a facade's request, or starts a new trace, as `filters.WithTracing` does.

use std::task::{Context, Poll};
use std::time::SystemTime;

use portico_kit::layer::{LayerFuture, take_ready};
use portico_kit::spans;
use tonic::body::Body;
use tower::Service;

use super::Caller;

/// Tracing layer.
#[derive(Clone)]
pub struct Trace<S> {
    inner: S,
}

impl<S> Trace<S> {
    /// Wraps `inner`.
    pub(super) fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S> Service<http::Request<Body>> for Trace<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = S::Error;
    type Future = LayerFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if !spans::are_exported() {
            return LayerFuture::from_inner(self.inner.call(request));
        }
        let caller = request.extensions().get::<Caller>();
        let is_trusted =
            caller.is_some_and(|caller| caller.is_forwarded() || caller.user().may_start_traces());
        let name = request.uri().path().trim_start_matches('/').to_owned();
        let span = spans::request(name, request.headers(), is_trusted, SystemTime::now());
        let mut inner = take_ready(&mut self.inner);
        LayerFuture::from_boxed(span.instrument(async move { inner.call(request).await }))
    }
}
