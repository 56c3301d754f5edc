//! The chain on gRPC: who calls, whether the peer may speak for others, and what no message needs to be read for.
//!
//! Wraps the generated services as one tower layer, for sockets and for the in-process facade alike. What depends on
//! a message (the object asked for) is authorized by the service itself, through the [`Caller`] left in extensions.

mod authenticate;
mod caller;
pub(crate) mod methods;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tonic::body::Body;
use tower::{Layer, Service};

pub use authenticate::Identities;
use authenticate::Refused;
pub use caller::Caller;
use methods::Access;

/// Puts the chain around the services.
#[derive(Clone)]
pub struct ChainLayer {
    identities: Arc<Identities>,
}

impl ChainLayer {
    /// A chain that believes these identities.
    #[must_use]
    pub fn new(identities: Arc<Identities>) -> Self {
        Self { identities }
    }
}

impl<S> Layer<S> for ChainLayer {
    type Service = Chain<S>;

    fn layer(&self, inner: S) -> Chain<S> {
        Chain { inner, identities: Arc::clone(&self.identities) }
    }
}

/// Services behind the chain.
#[derive(Clone)]
pub struct Chain<S> {
    inner: S,
    identities: Arc<Identities>,
}

impl<S> Service<http::Request<Body>> for Chain<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        match self.identities.admit(&mut request) {
            Ok(()) => Box::pin(self.inner.call(request)),
            Err(Refused::Status(status)) => Box::pin(std::future::ready(Ok(status.into_http()))),
            Err(Refused::Ask(token)) => {
                // The one that is ready goes along; its clone may not be.
                let next = self.inner.clone();
                let mut inner = std::mem::replace(&mut self.inner, next);
                let identities = Arc::clone(&self.identities);
                Box::pin(async move {
                    if let Err(status) = identities.reviewed(&token).await {
                        return Ok(status.into_http());
                    }
                    match identities.admit(&mut request) {
                        Ok(()) => inner.call(request).await,
                        Err(Refused::Status(status)) => Ok(status.into_http()),
                        Err(Refused::Ask(_)) => Ok(authenticate::unauthorized().into_http()),
                    }
                })
            }
        }
    }
}

impl Identities {
    /// Names the caller, checks what the method asks of any caller, and leaves the [`Caller`] in extensions.
    fn admit(&self, request: &mut http::Request<Body>) -> Result<(), Refused> {
        let path = request.uri().path().to_owned();
        let access = methods::access(&path);
        if access == Access::Anyone {
            return Ok(());
        }
        let caller = self.caller(request)?;
        match access {
            Access::Anyone | Access::Object => {}
            Access::Path => caller.authorize_path(&format!("/grpc{path}"))?,
            Access::Facade => caller.require_facade(&path)?,
        }
        request.extensions_mut().insert(caller);
        Ok(())
    }
}
