//! Transport to the control service: in this process, or over TLS with a facade's certificate.
//!
//! The configuration, calls and watches have separate connections, so that they do not use up each other's streams; calls and
//! watches have one for each runtime, so that no request waits for another thread. More calls or watches than one connection
//! should carry get further connections. Does not depend on the services that are called.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use arc_swap::ArcSwap;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use portico_auth::forwarded::LocalTrust;
use portico_kit::connection_runtimes;
use portico_proto::client::{ConnectError, Connection};
use tonic::transport::{Channel, Endpoint};
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};

use crate::body::BoxError;

/// Calls, or watches, on one connection to the control service.
///
/// Control services accept `--control-max-streams-per-connection` (1,024); a call beyond that would wait for the end of
/// another call.
///
/// Limit (Facades and control services): the next one gets another connection.
const MAX_CALLS_PER_CONNECTION: usize = 500;

/// Bytes of an unread response that wait in a connection for one call.
///
/// Limit (Facades and control services, bytes): the control service pauses the response.
const CALL_WINDOW: u32 = 1 << 20;
/// Bytes of unread events that wait in a connection for one watch.
///
/// Limit (Facades and control services, bytes): the control service pauses the watch.
const WATCH_WINDOW: u32 = 256 << 10;

/// Service type of the generated clients.
pub type GrpcService =
    BoxCloneSyncService<Request<tonic::body::Body>, Response<tonic::body::Body>, ControlError>;

/// Error of a call that did not reach the control service.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ControlError(#[source] BoxError);

/// Transport to one control service. Cheap to clone.
#[derive(Clone)]
pub struct ControlTransport {
    pub(crate) config: GrpcService,
    pub(crate) calls: GrpcService,
    pub(crate) streams: GrpcService,
    pub(crate) trust: Option<LocalTrust>,
    pub(crate) local: bool,
    /// Connections to a control service in another process, which can be replaced.
    channels: Option<Arc<ArcSwap<Channels>>>,
}

struct Channels {
    endpoint: Endpoint,
    config: Channel,
    calls: RuntimeChannels<CountedChannels>,
    streams: RuntimeChannels<CountedChannels>,
}

impl Channels {
    fn new(connection: &Connection, runtimes: usize) -> Result<Self, ConnectError> {
        Ok(Self::from_endpoint(connection.endpoint()?, runtimes))
    }

    fn from_endpoint(endpoint: Endpoint, runtimes: usize) -> Self {
        let with_window = |window: u32| {
            let endpoint = endpoint.clone().initial_stream_window_size(window);
            endpoint.initial_connection_window_size(window * MAX_CALLS_PER_CONNECTION as u32)
        };
        Self {
            config: endpoint.connect_lazy(),
            calls: RuntimeChannels::new(&with_window(CALL_WINDOW), runtimes, CountedChannels::new),
            streams: RuntimeChannels::new(&with_window(WATCH_WINDOW), runtimes, CountedChannels::new),
            endpoint,
        }
    }

    /// Returns the same channels, not connected yet.
    fn with_new_connections(&self) -> Self {
        Self::from_endpoint(self.endpoint.clone(), self.calls.runtimes.len())
    }
}

/// One value per runtime, and one for all other threads.
struct RuntimeChannels<T> {
    endpoint: Endpoint,
    make: fn(&Endpoint) -> T,
    runtimes: Box<[OnceLock<T>]>,
    shared: T,
}

impl<T> RuntimeChannels<T> {
    fn new(endpoint: &Endpoint, runtimes: usize, make: fn(&Endpoint) -> T) -> Self {
        Self {
            endpoint: endpoint.clone(),
            make,
            runtimes: (0..runtimes).map(|_| OnceLock::new()).collect(),
            shared: make(endpoint),
        }
    }

    /// Value of this runtime, created at its first call: the task that drives a channel runs in the runtime that created it.
    fn current(&self) -> &T {
        let own_value = connection_runtimes::current_index().and_then(|runtime| self.runtimes.get(runtime));
        own_value.map_or(&self.shared, |cell| cell.get_or_init(|| (self.make)(&self.endpoint)))
    }
}

/// Opens another channel when all others carry [`MAX_CALLS_PER_CONNECTION`] calls.
struct CountedChannels {
    endpoint: Endpoint,
    open: Mutex<Vec<CountedChannel>>,
}

struct CountedChannel {
    channel: Channel,
    /// Counts calls: each one holds a clone.
    slot: Arc<()>,
}

impl CountedChannel {
    fn has_room(&self) -> bool {
        Arc::strong_count(&self.slot) <= MAX_CALLS_PER_CONNECTION
    }

    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.slot) == 1
    }
}

impl CountedChannels {
    fn new(endpoint: &Endpoint) -> Self {
        Self { endpoint: endpoint.clone(), open: Mutex::default() }
    }

    /// Returns a channel with room for another call, and a slot on it. Keeps one idle channel after it open.
    fn with_room(&self) -> (Channel, Arc<()>) {
        let mut open = self.open.lock();
        let first = open.iter().position(CountedChannel::has_room).unwrap_or(open.len());
        while open.len() > first + 2 && open.last().is_some_and(CountedChannel::is_idle) {
            open.pop();
        }
        if let Some(CountedChannel { channel, slot }) = open.get(first) {
            return (channel.clone(), Arc::clone(slot));
        }
        let opened = CountedChannel { channel: self.endpoint.connect_lazy(), slot: Arc::default() };
        let channel_and_slot = (opened.channel.clone(), Arc::clone(&opened.slot));
        open.push(opened);
        channel_and_slot
    }
}

/// Returns a channel of this runtime with room, and a slot on it.
fn channel_with_slot(channels: &RuntimeChannels<CountedChannels>) -> (Channel, Option<Arc<()>>) {
    let (channel, slot) = channels.current().with_room();
    (channel, Some(slot))
}

/// Service that selects the connection at the time of each call.
#[derive(Clone)]
struct CurrentChannel {
    channels: Arc<ArcSwap<Channels>>,
    select: fn(&Channels) -> (Channel, Option<Arc<()>>),
}

impl Service<Request<tonic::body::Body>> for CurrentChannel {
    type Response = Response<tonic::body::Body>;
    type Error = ControlError;
    type Future = BoxFuture<'static, Result<Self::Response, ControlError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ControlError>> {
        // The call itself waits until its channel is ready, which can be another one by then.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        let (channel, slot) = (self.select)(&self.channels.load());
        Box::pin(async move {
            let response = channel.oneshot(request).await.map_err(|e| ControlError(e.into()))?;
            let Some(slot) = slot else { return Ok(response) };
            Ok(response.map(|body| {
                // The call holds its slot until its body is read.
                tonic::body::Body::new(body.map_frame(move |frame| {
                    let _slot = &slot;
                    frame
                }))
            }))
        })
    }
}

impl ControlTransport {
    /// Connects to services in this process; `trust` proves that calls come from it.
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

    /// Creates the transport to a control service in another process, for calls from `runtimes` runtimes. Dials at
    /// the first call.
    ///
    /// # Errors
    /// [`ConnectError`] if the address or the certificates cannot be used.
    pub fn remote(connection: &Connection, runtimes: usize) -> Result<Self, ConnectError> {
        let channels = Arc::new(ArcSwap::from_pointee(Channels::new(connection, runtimes)?));
        let service = |select: fn(&Channels) -> (Channel, Option<Arc<()>>)| {
            BoxCloneSyncService::new(CurrentChannel { channels: Arc::clone(&channels), select })
        };
        Ok(Self {
            config: service(|channels| (channels.config.clone(), None)),
            calls: service(|channels| channel_with_slot(&channels.calls)),
            streams: service(|channels| channel_with_slot(&channels.streams)),
            trust: None,
            local: false,
            channels: Some(channels),
        })
    }

    /// Uses new connections, with other credentials, for further calls; calls in progress are not interrupted.
    ///
    /// # Errors
    /// [`ConnectError`]; the old connections stay in use.
    pub fn reconnect(&self, connection: &Connection) -> Result<(), ConnectError> {
        if let Some(current) = &self.channels {
            let runtimes = current.load().calls.runtimes.len();
            current.store(Arc::new(Channels::new(connection, runtimes)?));
        }
        Ok(())
    }

    /// Uses new connections for further calls, because existing ones may be dead.
    pub(crate) fn forget_connections(&self) {
        if let Some(current) = &self.channels {
            let replacement = current.load().with_new_connections();
            current.store(Arc::new(replacement));
        }
    }

    /// Creates a request, with the proof of its origin if the control service is in this process.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_beyond_the_maximum_gets_another_connection_until_one_ends() {
        let channels = CountedChannels::new(&Endpoint::from_static("http://127.0.0.1:1"));
        let mut slots: Vec<_> = (0..MAX_CALLS_PER_CONNECTION).map(|_| channels.with_room().1).collect();
        assert_eq!(channels.open.lock().len(), 1);
        let next = channels.with_room().1;
        assert_eq!(channels.open.lock().len(), 2);
        assert!(!Arc::ptr_eq(&slots[0], &next));
        let first = Arc::clone(&channels.open.lock()[0].slot);
        drop(slots.pop());
        drop(slots.pop());
        assert!(Arc::ptr_eq(&channels.with_room().1, &first));
        assert_eq!(channels.open.lock().len(), 2);
    }

    #[tokio::test]
    async fn connections_that_a_burst_has_opened_are_closed_when_they_are_idle() {
        let channels = CountedChannels::new(&Endpoint::from_static("http://127.0.0.1:1"));
        let slots: Vec<_> = (0..4 * MAX_CALLS_PER_CONNECTION).map(|_| channels.with_room().1).collect();
        assert_eq!(channels.open.lock().len(), 4);
        drop(slots);
        let _held = channels.with_room();
        assert_eq!(channels.open.lock().len(), 2, "one in use, one in reserve");
    }

    #[tokio::test]
    async fn calls_are_counted_as_watches_are() {
        let connection = Connection::new("http://127.0.0.1:1".to_owned());
        let channels = Channels::new(&connection, 0).unwrap();
        let calls: Vec<_> =
            (0..=MAX_CALLS_PER_CONNECTION).map(|_| channel_with_slot(&channels.calls)).collect();
        assert!(calls.iter().all(|(_, slot)| slot.is_some()));
        assert_eq!(channels.calls.current().open.lock().len(), 2);
    }
}
