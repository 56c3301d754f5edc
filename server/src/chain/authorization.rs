//! Authorization layer: checks the access that a method requires before its message is read.

use std::task::{Context, Poll};

use portico_kit::layer::{LayerFuture, take_ready};
use tonic::body::Body;
use tower::Service;

use super::caller::Caller;
use super::identities::unauthorized;
use super::methods::{Access, access};

/// Authorization layer.
#[derive(Clone)]
pub struct MethodAuthorization<S> {
    inner: S,
}

impl<S> MethodAuthorization<S> {
    /// Wraps `inner`.
    pub(super) fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S> Service<http::Request<Body>> for MethodAuthorization<S>
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
        let caller = match check(&request) {
            Ok(None) => return LayerFuture::from_inner(self.inner.call(request)),
            Ok(Some(caller)) => caller,
            Err(status) => return LayerFuture::from_response(Ok(status.into_http())),
        };
        let mut inner = take_ready(&mut self.inner);
        LayerFuture::from_boxed(async move {
            match caller.authorize_path(&format!("/grpc{}", request.uri().path())).await {
                Ok(()) => inner.call(request).await,
                Err(status) => Ok(status.into_http()),
            }
        })
    }
}

/// Returns the caller to authorize; `None` if the method requires no authorization of its path.
fn check(request: &http::Request<Body>) -> Result<Option<Caller>, Box<tonic::Status>> {
    let path = request.uri().path();
    let access = access(path);
    if access == Access::Anyone {
        return Ok(None);
    }
    let caller = request.extensions().get::<Caller>().ok_or_else(|| Box::new(unauthorized()))?;
    match access {
        Access::Anyone | Access::Object => Ok(None),
        Access::Path => Ok(Some(caller.clone())),
        Access::Facade => caller.require_facade(path).map(|()| None).map_err(Box::new),
    }
}
