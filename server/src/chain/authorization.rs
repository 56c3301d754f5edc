//! Authorization of methods: what a method asks of a caller before its message is read.

use std::task::{Context, Poll};

use portico_kit::layer::Step;
use tonic::body::Body;
use tower::Service;

use super::caller::Caller;
use super::identities::unauthorized;
use super::methods::{Access, access};

/// See the module.
#[derive(Clone)]
pub struct MethodAuthorization<S> {
    inner: S,
}

impl<S> MethodAuthorization<S> {
    /// Around `inner`.
    pub(super) fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S> Service<http::Request<Body>> for MethodAuthorization<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>>,
{
    type Response = http::Response<Body>;
    type Error = S::Error;
    type Future = Step<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        match check(&request) {
            Ok(()) => Step::passed(self.inner.call(request)),
            Err(status) => Step::answered(Ok(status.into_http())),
        }
    }
}

fn check(request: &http::Request<Body>) -> Result<(), Box<tonic::Status>> {
    let path = request.uri().path();
    let access = access(path);
    if access == Access::Anyone {
        return Ok(());
    }
    let caller = request.extensions().get::<Caller>().ok_or_else(|| Box::new(unauthorized()))?;
    match access {
        Access::Anyone | Access::Object => Ok(()),
        Access::Path => caller.authorize_path(&format!("/grpc{path}")).map_err(Box::new),
        Access::Facade => caller.require_facade(path).map_err(Box::new),
    }
}
