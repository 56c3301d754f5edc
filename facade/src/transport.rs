//! How the control service is reached: in this process, or over TLS with a facade's certificate.
//!
//! Three connections, so that the configuration, calls and watches do not fill each other's streams. It must not
//! know which services are called.

use std::sync::Arc;
use std::task::{Context, Poll};

use arc_swap::ArcSwap;
use futures::future::BoxFuture;
use http::{Request, Response};
use portico_auth::forwarded::LocalTrust;
use portico_proto::client::{ConnectError, Connection};
use tonic::transport::Channel;
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};

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
    /// The connections to a control service elsewhere, so that they can be replaced.
    channels: Option<Arc<Channels>>,
}

/// Config, calls, streams.
type Channels = [ArcSwap<Channel>; 3];
const CONFIG: usize = 0;
const CALLS: usize = 1;
const STREAMS: usize = 2;

/// One of the connections, whichever it is at the time of a call.
#[derive(Clone)]
struct Current {
    channels: Arc<Channels>,
    which: usize,
}

impl Service<Request<tonic::body::Body>> for Current {
    type Response = Response<tonic::body::Body>;
    type Error = ControlError;
    type Future = BoxFuture<'static, Result<Self::Response, ControlError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ControlError>> {
        // The channel of the call says when it is ready: it may be another one by then.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        let channel = Channel::clone(&self.channels[self.which].load());
        Box::pin(async move { channel.oneshot(request).await.map_err(|e| ControlError(e.into())) })
    }
}

fn channels(connection: &Connection) -> Result<[Channel; 3], ConnectError> {
    Ok([connection.channel()?, connection.channel()?, connection.channel()?])
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
        Self { config, calls, streams, trust: Some(trust), local: true, channels: None }
    }

    /// A control service elsewhere. Nothing is dialled before the first call.
    ///
    /// # Errors
    /// [`ConnectError`] when address or certificates cannot be used.
    pub fn remote(connection: &Connection) -> Result<Self, ConnectError> {
        let [config, calls, streams] = channels(connection)?;
        let current = Arc::new([
            ArcSwap::from_pointee(config),
            ArcSwap::from_pointee(calls),
            ArcSwap::from_pointee(streams),
        ]);
        let through = |which| BoxCloneSyncService::new(Current { channels: Arc::clone(&current), which });
        Ok(Self {
            config: through(CONFIG),
            calls: through(CALLS),
            streams: through(STREAMS),
            trust: None,
            local: false,
            channels: Some(current),
        })
    }

    /// Calls from now on go over new connections, with other credentials; what is under way is not cut.
    ///
    /// # Errors
    /// [`ConnectError`]; everything stays as it was then.
    pub fn reconnect(&self, connection: &Connection) -> Result<(), ConnectError> {
        let fresh = channels(connection)?;
        if let Some(current) = &self.channels {
            for (place, channel) in current.iter().zip(fresh) {
                place.store(Arc::new(channel));
            }
        }
        Ok(())
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
