//! The in-process channel: the services behind their chain, without a socket.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use portico_auth::forwarded::LocalTrust;
use tonic::body::Body;
use tonic::service::Routes;
use tower::{Layer, Service};

use crate::chain::{Chain, ChainLayer};

/// The control service as the facade of the same process calls it. Cheap to clone. Deadlines and limits are the
/// caller's: there is no transport that would know of them.
#[derive(Clone)]
pub struct LocalChannel {
    services: Chain<Routes>,
    trust: LocalTrust,
}

impl LocalChannel {
    pub(super) fn new(chain: &ChainLayer, routes: Routes, trust: LocalTrust) -> Self {
        Self { services: chain.layer(routes), trust }
    }
}

impl Service<http::Request<Body>> for LocalChannel {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.services.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        request.extensions_mut().insert(self.trust.clone());
        self.services.call(request)
    }
}
