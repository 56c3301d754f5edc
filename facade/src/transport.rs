//! How the control service is reached: in this process, or over TLS with a facade's certificate.
//!
//! Three connections, so that the configuration, calls and watches do not fill each other's streams. It must not
//! know which services are called.

use http::{Request, Response};
use portico_auth::forwarded::LocalTrust;
use portico_proto::client::{ConnectError, Connection};
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;

use crate::body::BoxError;

/// What generated clients call.
pub type GrpcService =
    BoxCloneSyncService<Request<tonic::body::Body>, Response<tonic::body::Body>, ControlError>;

/// A call that did not reach the control service.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ControlError(#[source] BoxError);

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct ControlTransport {
    pub(crate) config: GrpcService,
    pub(crate) calls: GrpcService,
    pub(crate) streams: GrpcService,
    pub(crate) trust: Option<LocalTrust>,
    pub(crate) local: bool,
}

impl ControlTransport {
    /// The generated servers of this very process; `trust` proves it.
    pub fn local<S>(service: S, trust: LocalTrust) -> Self
    where
        S: tower::Service<Request<tonic::body::Body>, Response = Response<tonic::body::Body>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        let service = BoxCloneSyncService::new(service.map_err(|e: S::Error| ControlError(e.into())));
        let (config, calls, streams) = (service.clone(), service.clone(), service);
        Self { config, calls, streams, trust: Some(trust), local: true }
    }

    /// A control service elsewhere. Nothing is dialled before the first call.
    ///
    /// # Errors
    /// [`ConnectError`] when address or certificates cannot be used.
    pub fn remote(connection: &Connection) -> Result<Self, ConnectError> {
        let channel = || -> Result<GrpcService, ConnectError> {
            Ok(BoxCloneSyncService::new(connection.channel()?.map_err(|e| ControlError(e.into()))))
        };
        Ok(Self { config: channel()?, calls: channel()?, streams: channel()?, trust: None, local: false })
    }

    /// A request that carries the proof of being made in this process, where it is.
    pub(crate) fn request<T>(&self, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        if let Some(trust) = &self.trust {
            request.extensions_mut().insert(trust.clone());
        }
        request
    }
}

impl std::fmt::Debug for ControlTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlTransport").field("local", &self.local).finish_non_exhaustive()
    }
}
