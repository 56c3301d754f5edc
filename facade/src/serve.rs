//! One connection: HTTP/1.1 or HTTP/2 by ALPN, its limits, and how it ends.
//!
//! The handler chain sees requests; this module sees bytes, idle time and the drain. It must not know what a
//! request asks for.

mod activity;
mod exchange;
mod frames;
mod io;
mod stream;
mod wellformed;

pub use activity::{Activity, Busy};
pub use exchange::Exchange;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::header::{CONNECTION, HeaderValue};
use http::{Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use portico_auth::PeerChain;
use portico_kit::dial::client_http_reason;
use portico_kit::drain::Watch;
use portico_kit::listener::{Accepted, PeerInfo};
use portico_kit::received::Received;
use portico_kit::tasks::TaskSet;
use portico_machinery::UserInfo;
use portico_proxy::{ClientAddress, Identity};
use tokio::sync::Notify;

use crate::body::Body;
use crate::context::RequestContext;
use crate::filters::Handler;
use io::ConnectionIo;
use stream::StreamExecutor;

/// Limits of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// A request's head must be complete this long after its first byte.
    pub header_timeout: Duration,
    /// A connection without requests is closed after this long: by GOAWAY in HTTP/2.
    pub idle_timeout: Duration,
    /// A response of which the client takes nothing for so long is aborted.
    pub stalled_write: Duration,
    /// Bytes of a request's headers; more is 431.
    pub max_header_bytes: u32,
    /// Header fields of an HTTP/1 request; more is 431.
    pub max_headers: usize,
    /// `--http2-max-streams-per-connection`
    pub max_streams: u32,
    /// `--disable-http2-serving` turns it off.
    pub http2: bool,
}

impl Default for ConnectionLimits {
    /// Upstream's: 32 s, 90 s, 1 MiB, 100 streams; and 60 s for stalled responses, 100 header fields.
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(32),
            idle_timeout: Duration::from_secs(90),
            stalled_write: Duration::from_secs(60),
            max_header_bytes: 1 << 20,
            max_headers: 100,
            max_streams: 100,
            http2: true,
        }
    }
}

impl ConnectionLimits {
    /// How often a connection is looked at: often enough to find a slow head soon after its time.
    fn look(&self) -> Duration {
        self.header_timeout.min(self.idle_timeout) / 4
    }
}

/// How much a stream may send ahead of us.
const STREAM_WINDOW: u32 = 256 * 1024;
/// A quiet HTTP/2 connection is asked for a sign of life.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// And closed without one.
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// What the chain may know about the connection of a request.
#[derive(Debug)]
pub struct Connection {
    /// The client's address.
    pub peer: SocketAddr,
    /// The same, as backends read it.
    pub client: ClientAddress,
    /// The certificates that the client presented and holds the key of; nothing is known about their worth.
    pub chain: Option<PeerChain>,
    /// What is going on; see the module of the same name.
    pub activity: Arc<Activity>,
    /// The response under way in HTTP/1; in HTTP/2 each stream has its own.
    pub exchange: Arc<Exchange>,
    /// The user of the connection's first proxied request, and as whom backends know them.
    identity: OnceLock<(Arc<UserInfo>, Arc<Identity>)>,
    go_away: Notify,
}

impl Connection {
    /// Of an accepted connection.
    #[must_use]
    pub fn new(peer: &PeerInfo) -> Self {
        let chain = peer.chain.as_ref().and_then(|chain| PeerChain::new(chain));
        Self { chain, ..Self::plain(peer.addr) }
    }

    /// A connection without certificates.
    #[must_use]
    pub fn plain(peer: SocketAddr) -> Self {
        Self {
            peer,
            client: peer.ip().into(),
            chain: None,
            activity: Arc::default(),
            exchange: Arc::new(Exchange::of_connection()),
            identity: OnceLock::new(),
            go_away: Notify::new(),
        }
    }

    /// A user as backends know them. Of most connections all requests are one user's: theirs are made once.
    #[must_use]
    pub fn identity(&self, user: &Arc<UserInfo>) -> Arc<Identity> {
        let make = || Arc::new(Identity::new(user));
        let (first, identity) = self.identity.get_or_init(|| (user.clone(), make()));
        // Compared as pointers first: a user known by a certificate is the same one each time.
        if first == user { identity.clone() } else { make() }
    }

    /// No further requests on this connection: GOAWAY.
    pub fn go_away(&self) {
        self.go_away.notify_one();
    }

    /// The connection ends after this response: by GOAWAY, or by `Connection: close`.
    pub fn close_after(&self, http2: bool, response: &mut Response<Body>) {
        if http2 {
            self.go_away();
        } else {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// Serves connections with one handler.
pub struct Server<H> {
    handler: Arc<H>,
    limits: ConnectionLimits,
    http1: http1::Builder,
    http2: http2::Builder<StreamExecutor>,
    drain: Watch,
}

impl<H: Handler> Server<H> {
    /// A server; `drain` tells connections to finish what they have and close.
    pub fn new(handler: H, limits: ConnectionLimits, tasks: &TaskSet, drain: Watch) -> Self {
        let mut http1 = http1::Builder::new();
        // The watchdog below bounds slow heads, without a timer per request.
        // `pipeline_flush` stays off: with it hyper buffers without bound for a client that does not read.
        http1.header_read_timeout(None).half_close(false);
        http1.max_buf_size((limits.max_header_bytes as usize).max(8192));
        if limits.max_headers != ConnectionLimits::default().max_headers {
            http1.max_headers(limits.max_headers);
        }
        let mut http2 =
            http2::Builder::new(StreamExecutor::new(tasks.executor("http2"), limits.stalled_write));
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.max_streams)
            .max_header_list_size(limits.max_header_bytes)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(STREAM_WINDOW.saturating_mul(limits.max_streams).min(1 << 30))
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT);
        Self { handler: Arc::new(handler), limits, http1, http2, drain }
    }

    /// Serves one connection until it ends.
    pub async fn connection(&self, accepted: Accepted) {
        let connection = Arc::new(Connection::new(&accepted.peer));
        let is_http2 = accepted.peer.is_http2();
        let (activity, exchange) = (connection.activity.clone(), connection.exchange.clone());
        let io = ConnectionIo::new(accepted.io, activity, exchange, is_http2, self.limits.stalled_write);
        let io = TokioIo::new(io);
        let service = self.service(connection.clone());
        if is_http2 {
            let conn = std::pin::pin!(self.http2.serve_connection(io, service));
            self.run(&connection, conn, http2::Connection::graceful_shutdown).await;
        } else {
            let conn = std::pin::pin!(self.http1.serve_connection(io, service).with_upgrades());
            self.run(&connection, conn, http1::UpgradeableConnection::graceful_shutdown).await;
        }
    }

    fn service(
        &self,
        connection: Arc<Connection>,
    ) -> impl HttpService<Incoming, ResBody = Body, Error = Infallible, Future: Send + Unpin + 'static> + use<H>
    {
        let handler = self.handler.clone();
        service_fn(move |request: http::Request<Incoming>| {
            let (handler, connection) = (handler.clone(), connection.clone());
            let busy = connection.activity.busy();
            connection.exchange.request();
            // In a box of its own, which goes when the response's head is there: while a body streams (a watch), nothing of
            // the chain is held.
            Box::pin(async move {
                if let Some(refusal) = wellformed::refusal(&request) {
                    return Ok(refusal);
                }
                let mut x = RequestContext::new(Received::request(request).map(Body::from), connection);
                x.guards.busy = Some(busy);
                if let Some(stream) = stream::current() {
                    x.exchange = stream;
                }
                let response = handler.handle(&mut x).await;
                x.exchange.hand_over();
                if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                    x.connection.activity.upgrade();
                }
                Ok::<_, Infallible>(response)
            })
        })
    }

    /// Polls the connection until it ends; asks it to finish on a drain, a GOAWAY, or when it idles.
    async fn run<C>(
        &self,
        connection: &Connection,
        mut conn: std::pin::Pin<&mut C>,
        graceful: fn(std::pin::Pin<&mut C>),
    ) where
        C: Future<Output = hyper::Result<()>>,
    {
        // A set of one: it polls the wait when that is woken, not whenever the connection is.
        let mut ending = FuturesUnordered::from_iter([self.ending(connection, false)]);
        loop {
            tokio::select! {
                biased;
                ended = conn.as_mut() => {
                    if let Err(error) = ended {
                        let reason = client_http_reason(&error);
                        tracing::debug!(peer = %connection.peer, reason, "connection ended");
                    }
                    return;
                }
                ending = ending.next() => if ending != Some(Ending::Finish) {
                    tracing::debug!(peer = %connection.peer, "closing a slow or idle connection");
                    return;
                },
            }
            graceful(conn.as_mut());
            ending.push(self.ending(connection, true));
        }
    }

    /// Waits until the connection should finish, unless it is `finishing`, or must be closed.
    async fn ending(&self, connection: &Connection, finishing: bool) -> Ending {
        let mut drain = self.drain.clone();
        loop {
            // A client that was asked to go gets time to answer.
            let pause =
                if finishing { self.limits.look() } else { connection.activity.next_look(&self.limits) };
            let look = tokio::time::sleep(pause);
            tokio::select! {
                biased;
                () = drain.signaled(), if !finishing => return Ending::Finish,
                () = connection.go_away.notified(), if !finishing => return Ending::Finish,
                () = look => match connection.activity.verdict(&self.limits) {
                    activity::Verdict::Fine => {}
                    activity::Verdict::Idle if !finishing => return Ending::Finish,
                    activity::Verdict::Idle | activity::Verdict::SlowHead => return Ending::Close,
                },
            }
        }
    }
}

/// How a connection is brought to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// After what is under way.
    Finish,
    /// Now.
    Close,
}
