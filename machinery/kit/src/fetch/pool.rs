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
use crate::received::Received;
use crate::tasks::TaskSet;

/// Default number of idle connections per target, for each serving thread and for all other threads together.
const PER_TARGET: usize = 2;
/// Maximum number of idle connections in total; the one that is idle for the longest time is closed first.
const IN_ALL: usize = 1024;
/// Time after which an idle connection is closed.
const IDLE: Duration = Duration::from_secs(90);

/// Key of interchangeable connections.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) target: Target,
    /// ID of the TLS settings, or 0 without TLS.
    tls: u64,
    /// Index of the serving thread, or `None` for other threads.
    runtime: Option<usize>,
}

impl Key {
    /// Returns the key of connections that the current thread opens to a target.
    pub(super) fn of(to: &FetchTarget) -> Self {
        let tls = to.tls.as_ref().map_or(0, |tls| tls.id());
        Self { target: to.target.clone(), tls, runtime: connection_runtimes::current() }
    }

    fn is_to(&self, other: &Self) -> bool {
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
    ) -> Result<Response<Received>, hyper::Error> {
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
                sender.send_request(request).await.map(Received::response)
            }
            Self::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await.map(Received::response)
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

struct Idle {
    sender: Sender,
    since: Instant,
}

#[derive(Clone)]
pub(super) struct Pool {
    kept: Arc<Mutex<HashMap<Key, Vec<Idle>>>>,
    per_target: usize,
}

impl Default for Pool {
    fn default() -> Self {
        Self::new(PER_TARGET)
    }
}

impl Pool {
    /// Returns a pool for this number of idle connections per target.
    pub(super) fn new(per_target: usize) -> Self {
        Self { kept: Arc::default(), per_target }
    }

    /// Removes and returns the most recently used connection that is still open.
    pub(super) fn take(&self, key: &Key) -> Option<Sender> {
        let mut kept = self.kept.lock();
        let idle = kept.get_mut(key)?;
        let mut found = None;
        while found.is_none()
            && let Some(candidate) = idle.pop()
        {
            found =
                (candidate.sender.is_open() && candidate.since.elapsed() < IDLE).then_some(candidate.sender);
        }
        if idle.is_empty() {
            kept.remove(key);
        }
        found
    }

    pub(super) fn put(&self, key: &Key, sender: Sender) {
        if !sender.is_open() {
            return;
        }
        let mut kept = self.kept.lock();
        let now = Instant::now();
        let idle = kept.entry(key.clone()).or_default();
        idle.retain(|idle| idle.sender.is_open());
        if idle.len() < self.per_target {
            idle.push(Idle { sender, since: now });
        }
        if kept.values().map(Vec::len).sum::<usize>() > IN_ALL {
            trim(&mut kept, now);
        }
    }

    /// Drops the connections that the peer has closed. Returns true if there were any.
    pub(super) fn drop_closed(&self, key: &Key) -> bool {
        let mut kept = self.kept.lock();
        let Some(idle) = kept.get_mut(key) else { return false };
        let before = idle.len();
        idle.retain(|idle| idle.sender.is_open());
        let any = idle.len() < before;
        if idle.is_empty() {
            kept.remove(key);
        }
        any
    }

    /// Closes the idle connections to a target, of all threads.
    pub(super) fn forget(&self, key: &Key) {
        self.kept.lock().retain(|other, _| !other.is_to(key));
    }

    pub(super) fn len(&self) -> usize {
        self.kept.lock().values().map(Vec::len).sum()
    }
}

/// Drops closed and expired connections, then the one that is idle for the longest time.
fn trim(kept: &mut HashMap<Key, Vec<Idle>>, now: Instant) {
    kept.retain(|_, idle| {
        idle.retain(|idle| idle.sender.is_open() && now - idle.since < IDLE);
        !idle.is_empty()
    });
    if kept.values().map(Vec::len).sum::<usize>() <= IN_ALL {
        return;
    }
    let since = |idle: &Vec<Idle>| idle.first().map(|idle| idle.since);
    let oldest = kept.iter().min_by_key(|(_, idle)| since(idle)).map(|(key, _)| key.clone());
    if let Some(oldest) = oldest {
        kept.remove(&oldest);
    }
}
