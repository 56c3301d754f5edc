//! Pool of idle connections: a few per target, bounded in total, closed after an idle timeout.
//!
//! A serving thread keeps the connections that it has opened: the task that drives a connection stays on its thread, so that no
//! thread has to wake another one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;

use super::target::FetchTarget;
use crate::connection_runtimes;
use crate::dial::{Connection, NegotiatedAlpn, Target, http_reason};
use crate::received_body::ReceivedBody;
use crate::tasks::TaskSet;

/// Default number of idle connections per target, for each serving thread and for all other threads together.
const MAX_IDLE_PER_TARGET: usize = 2;
/// Maximum number of idle connections in total; the one that is idle for the longest time is closed first.
const MAX_IDLE: usize = 1024;
/// Time after which an idle connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// Key of interchangeable connections.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct PoolKey {
    pub(super) target: Target,
    /// ID of the TLS settings, or 0 without TLS.
    tls: u64,
    /// Index of the serving thread, or `None` for other threads.
    runtime: Option<usize>,
}

impl PoolKey {
    /// Returns the key of connections that the current thread opens to a target.
    pub(super) fn for_target(to: &FetchTarget) -> Self {
        let tls = to.tls.as_ref().map_or(0, |tls| tls.id());
        Self { target: to.target.clone(), tls, runtime: connection_runtimes::current_index() }
    }

    fn has_same_target(&self, other: &Self) -> bool {
        self.target == other.target && self.tls == other.tls
    }
}

/// Sending half of a connection. The task that drives the connection ends when this is dropped.
pub(super) enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Sender {
    /// Performs the HTTP handshake. `ended` is called when the connection has ended, on either side.
    pub(super) async fn handshake(
        connection: Connection,
        tasks: &TaskSet,
        ended: impl FnOnce() + Send + 'static,
    ) -> Result<Self, hyper::Error> {
        let alpn = connection.alpn();
        let io = TokioIo::new(connection);
        let closed = |result: Result<(), hyper::Error>| {
            if let Err(error) = result {
                tracing::debug!(error = http_reason(&error), "fetch connection failed");
            }
            ended();
        };
        match alpn {
            NegotiatedAlpn::Http1 => {
                let (sender, driver) = http1::handshake(io).await?;
                tasks.spawn_until_cancelled("fetch-connection", async move { closed(driver.await) });
                Ok(Self::Http1(sender))
            }
            NegotiatedAlpn::Http2 => {
                let mut builder = http2::Builder::new(tasks.executor("fetch-connection"));
                builder.timer(TokioTimer::new());
                let (sender, driver) = builder.handshake(io).await?;
                tasks.spawn_until_cancelled("fetch-connection", async move { closed(driver.await) });
                Ok(Self::Http2(sender))
            }
        }
    }

    pub(super) async fn send(
        &mut self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<ReceivedBody>, hyper::Error> {
        match self {
            Self::Http1(sender) => {
                // HTTP/1 needs the path in the request line, and the authority as a header.
                let uri = std::mem::take(request.uri_mut());
                if let Some(host) = uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok())
                {
                    request.headers_mut().insert(header::HOST, host);
                }
                let path = uri.path_and_query().map_or("/", |path| path.as_str());
                *request.uri_mut() = path.parse().unwrap_or_default();
                sender.ready().await?;
                sender.send_request(request).await.map(ReceivedBody::wrap_response)
            }
            Self::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await.map(ReceivedBody::wrap_response)
            }
        }
    }

    fn is_open(&self) -> bool {
        match self {
            Self::Http1(sender) => !sender.is_closed(),
            Self::Http2(sender) => !sender.is_closed(),
        }
    }
}

struct IdleConnection {
    sender: Sender,
    since: Instant,
}

#[derive(Clone)]
pub(super) struct Pool {
    idle: Arc<Mutex<HashMap<PoolKey, Vec<IdleConnection>>>>,
    per_target: usize,
}

impl Default for Pool {
    fn default() -> Self {
        Self::new(MAX_IDLE_PER_TARGET)
    }
}

impl Pool {
    /// Returns a pool for this number of idle connections per target.
    pub(super) fn new(per_target: usize) -> Self {
        Self { idle: Arc::default(), per_target }
    }

    /// Removes and returns the most recently used connection that is still open.
    pub(super) fn take(&self, key: &PoolKey) -> Option<Sender> {
        let mut idle_connections = self.idle.lock();
        let idle = idle_connections.get_mut(key)?;
        let mut open_sender = None;
        while open_sender.is_none()
            && let Some(candidate) = idle.pop()
        {
            open_sender = (candidate.sender.is_open() && candidate.since.elapsed() < IDLE_TIMEOUT)
                .then_some(candidate.sender);
        }
        if idle.is_empty() {
            idle_connections.remove(key);
        }
        open_sender
    }

    pub(super) fn put(&self, key: &PoolKey, sender: Sender) {
        if !sender.is_open() {
            return;
        }
        let mut idle_connections = self.idle.lock();
        let now = Instant::now();
        let idle = idle_connections.entry(key.clone()).or_default();
        idle.retain(|idle| idle.sender.is_open());
        if idle.len() < self.per_target {
            idle.push(IdleConnection { sender, since: now });
        }
        if idle_connections.values().map(Vec::len).sum::<usize>() > MAX_IDLE {
            trim(&mut idle_connections, now);
        }
    }

    /// Drops the connections that the peer has closed. Returns true if there were any.
    pub(super) fn drop_closed(&self, key: &PoolKey) -> bool {
        let mut idle_connections = self.idle.lock();
        let Some(idle) = idle_connections.get_mut(key) else { return false };
        let before = idle.len();
        idle.retain(|idle| idle.sender.is_open());
        let any = idle.len() < before;
        if idle.is_empty() {
            idle_connections.remove(key);
        }
        any
    }

    /// Closes the idle connections to a target, of all threads.
    pub(super) fn close_idle(&self, key: &PoolKey) {
        self.idle.lock().retain(|other, _| !other.has_same_target(key));
    }

    pub(super) fn len(&self) -> usize {
        self.idle.lock().values().map(Vec::len).sum()
    }
}

/// Drops closed and expired connections, then the one that is idle for the longest time.
fn trim(idle_connections: &mut HashMap<PoolKey, Vec<IdleConnection>>, now: Instant) {
    idle_connections.retain(|_, idle| {
        idle.retain(|idle| idle.sender.is_open() && now - idle.since < IDLE_TIMEOUT);
        !idle.is_empty()
    });
    if idle_connections.values().map(Vec::len).sum::<usize>() <= MAX_IDLE {
        return;
    }
    let since = |idle: &Vec<IdleConnection>| idle.first().map(|idle| idle.since);
    let oldest = idle_connections.iter().min_by_key(|(_, idle)| since(idle)).map(|(key, _)| key.clone());
    if let Some(oldest) = oldest {
        idle_connections.remove(&oldest);
    }
}
