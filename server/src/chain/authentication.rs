//! Authentication layer: adds the [`Caller`](super::Caller) to the extensions of a request, or refuses the request.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::task::{Context, Poll};

use http::StatusCode;
use portico_audit::Stage;
use portico_auditor::Auditor;
use portico_kit::layer::{LayerFuture, take_ready};
use tonic::body::Body;
use tower::Service;

use super::audit;
use super::identities::{Identities, NoCaller, is_grpc, unauthorized};
use super::methods::{Access, access};
use crate::listen::ConnectionInfo;

/// Authentication layer.
#[derive(Clone)]
pub struct Authentication<S> {
    identities: Arc<Identities>,
    auditor: Option<Arc<Auditor>>,
    inner: S,
}

impl<S> Authentication<S> {
    /// Wraps `inner`.
    pub(super) fn new(inner: S, identities: Arc<Identities>, auditor: Option<Arc<Auditor>>) -> Self {
        Self { identities, auditor, inner }
    }
}

impl<S> Service<http::Request<Body>> for Authentication<S>
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

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        let token = match authenticate(&self.identities, &mut request) {
            Ok(()) => return LayerFuture::from_inner(self.inner.call(request)),
            Err(NoCaller::Status(status)) => {
                let answer = refused(self.auditor.as_ref(), &request, *status);
                return LayerFuture::from_boxed(async move { Ok(answer.await) });
            }
            Err(NoCaller::ReviewToken(token)) => token,
        };
        // In-process calls have no tokens.
        let client = request.extensions().get::<ConnectionInfo>();
        let client = client.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |connected| connected.address.ip());
        let mut inner = take_ready(&mut self.inner);
        let (identities, auditor) = (Arc::clone(&self.identities), self.auditor.clone());
        LayerFuture::from_boxed(async move {
            if let Err(status) = identities.review_token(&token, client).await {
                return Ok(refused(auditor.as_ref(), &request, status).await);
            }
            let refusal = match authenticate(&identities, &mut request) {
                Ok(()) => return inner.call(request).await,
                Err(NoCaller::Status(status)) => *status,
                Err(NoCaller::ReviewToken(_)) => unauthorized(),
            };
            Ok(refused(auditor.as_ref(), &request, refusal).await)
        })
    }
}

/// Authenticates the caller, unless the method is open to everyone.
fn authenticate(identities: &Identities, request: &mut http::Request<Body>) -> Result<(), NoCaller> {
    if access(request.uri().path()) != Access::Anyone {
        let caller = identities.caller(request)?;
        request.extensions_mut().insert(caller);
    }
    Ok(())
}

/// Returns the response to a call that is not authenticated, after its audit event. The HTTP status is 200, or 415 if the request
/// is not gRPC.
fn refused(
    auditor: Option<&Arc<Auditor>>,
    request: &http::Request<Body>,
    refusal: tonic::Status,
) -> impl Future<Output = http::Response<Body>> + Send + use<> {
    let audited_request = audit::record_refusal(auditor, request, &refusal);
    let status = if is_grpc(request.headers()) { StatusCode::OK } else { StatusCode::UNSUPPORTED_MEDIA_TYPE };
    async move {
        if let Some(audited_request) = audited_request {
            audited_request.process(Stage::ResponseStarted).await;
        }
        let mut answer = refusal.into_http();
        *answer.status_mut() = status;
        answer
    }
}
