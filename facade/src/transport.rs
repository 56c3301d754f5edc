//! How the control service is reached: in this process, or over TLS with a facade's certificate.
//!
//! The configuration, calls and watches have connections of their own, so that they do not fill each other's streams;
//! calls and watches one of each runtime, so that no request waits for another thread. It must not know which services
//! are called.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use arc_swap::ArcSwap;
use futures::future::BoxFuture;
use http::{Request, Response};
use portico_auth::forwarded::LocalTrust;
use portico_kit::connection_runtimes;
use portico_proto::client::{ConnectError, Connection};
use tonic::transport::{Channel, Endpoint};
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
    channels: Option<Arc<ArcSwap<Channels>>>,
}

struct Channels {
    endpoint: Endpoint,
    config: Channel,
    calls: RuntimeChannels,
    streams: RuntimeChannels,
}

impl Channels {
    fn new(connection: &Connection, runtimes: usize) -> Result<Self, ConnectError> {
        Ok(Self::to(connection.endpoint()?, runtimes))
    }

    fn to(endpoint: Endpoint, runtimes: usize) -> Self {
        Self {
            config: endpoint.connect_lazy(),
            calls: RuntimeChannels::new(&endpoint, runtimes),
            streams: RuntimeChannels::new(&endpoint, runtimes),
            endpoint,
        }
    }

    /// The same, not connected yet.
    fn renewed(&self) -> Self {
        Self::to(self.endpoint.clone(), self.calls.runtimes.len())
    }
}

/// A channel of each runtime, and one of all other threads.
struct RuntimeChannels {
    endpoint: Endpoint,
    runtimes: Box<[OnceLock<Channel>]>,
    others: Channel,
}

impl RuntimeChannels {
    fn new(endpoint: &Endpoint, runtimes: usize) -> Self {
        Self {
            endpoint: endpoint.clone(),
            runtimes: (0..runtimes).map(|_| OnceLock::new()).collect(),
            others: endpoint.connect_lazy(),
        }
    }

    /// Made at a runtime's first call and by itself: what drives a channel lives where it was made.
    fn here(&self) -> &Channel {
        let mine = connection_runtimes::current().and_then(|runtime| self.runtimes.get(runtime));
        mine.map_or(&self.others, |channel| channel.get_or_init(|| self.endpoint.connect_lazy()))
    }
}

/// One of the connections, whichever it is at the time and place of a call.
#[derive(Clone)]
struct Current {
    channels: Arc<ArcSwap<Channels>>,
    of: fn(&Channels) -> &Channel,
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
        let channel = Channel::clone((self.of)(&self.channels.load()));
        Box::pin(async move { channel.oneshot(request).await.map_err(|e| ControlError(e.into())) })
    }
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

    /// A control service elsewhere, called from so many runtimes. Nothing is dialled before the first call.
    ///
    /// # Errors
    /// [`ConnectError`] when address or certificates cannot be used.
    pub fn remote(connection: &Connection, runtimes: usize) -> Result<Self, ConnectError> {
        let channels = Arc::new(ArcSwap::from_pointee(Channels::new(connection, runtimes)?));
        let through = |of| BoxCloneSyncService::new(Current { channels: Arc::clone(&channels), of });
        Ok(Self {
            config: through(|channels| &channels.config),
            calls: through(|channels| channels.calls.here()),
            streams: through(|channels| channels.streams.here()),
            trust: None,
            local: false,
            channels: Some(channels),
        })
    }

    /// Calls from now on go over new connections, with other credentials; what is under way is not cut.
    ///
    /// # Errors
    /// [`ConnectError`]; everything stays as it was then.
    pub fn reconnect(&self, connection: &Connection) -> Result<(), ConnectError> {
        if let Some(current) = &self.channels {
            let runtimes = current.load().calls.runtimes.len();
            current.store(Arc::new(Channels::new(connection, runtimes)?));
        }
        Ok(())
    }

    /// Calls from now on go over new connections: those that there are may lead nowhere.
    pub(crate) fn forget_connections(&self) {
        if let Some(current) = &self.channels {
            let renewed = current.load().renewed();
            current.store(Arc::new(renewed));
        }
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
