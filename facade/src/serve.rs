//! Serves one connection: HTTP/1.1 or HTTP/2 by ALPN, with its limits and its end.
//!
//! The layers handle requests; this module handles bytes, idle time and the drain. Does not depend on the content of
//! the requests.

mod io;
mod stream;
mod wellformed;

use std::cell::RefCell;
use std::future::ready;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::Either;
use futures::stream::FuturesUnordered;
use http::header::{CONTENT_LENGTH, EXPECT};
use http::{Method, StatusCode, Version};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use portico_kit::dial::client_http_reason;
use portico_kit::drain::Watch;
use portico_kit::lifecycle::Signal;
use portico_kit::listener::AcceptedConnection;
use portico_kit::received_body::ReceivedBody;
use portico_kit::tasks::TaskSet;

use crate::body::Body;
use crate::connection::{Connection, ConnectionLimits, NoResponse, OpenConnections, Verdict};
use crate::handler::Handler;
use crate::request::Response;
use io::ConnectionIo;
use stream::StreamExecutor;

/// Bytes of a request body that an HTTP/2 client may send ahead.
///
/// Limit (Serving, bytes): the client waits for a window update.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Maximum bytes of an unread request body that are read before the response: the client may have sent them ahead.
const MAX_UNREAD_BYTES: usize = STREAM_WINDOW as usize;
/// Time to receive the rest of an unread request body before the response is sent.
///
/// Limit (Serving): the response is sent without the rest.
const UNREAD_TIMEOUT: Duration = Duration::from_millis(500);
/// Silence on an HTTP/2 connection after which the facade sends a PING.
///
/// Limit (Serving): a PING is sent.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Time to answer that PING.
///
/// Limit (Serving): the connection is closed.
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// Time in which a client must respond to GOAWAY if it keeps sending new HTTP/2 requests.
///
/// Limit (Serving): the connection is closed.
const GOAWAY_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves connections, each with a clone of one handler.
pub struct Server<H> {
    handler: H,
    limits: ConnectionLimits,
    http1: http1::Builder,
    http2: http2::Builder<StreamExecutor>,
    open: OpenConnections,
    stopping: Signal,
    drain: Watch,
}

impl<H: Handler> Server<H> {
    /// Creates a server. After `stopping`, an HTTP/1.1 connection closes after its next response. `drain`, which makes all
    /// connections finish and close, would cut a request that a client is sending at that moment.
    pub fn new(
        handler: H,
        limits: ConnectionLimits,
        tasks: &TaskSet,
        open: OpenConnections,
        stopping: Signal,
        drain: Watch,
    ) -> Self {
        let mut http1 = http1::Builder::new();
        // The watchdog below limits slow heads, without a timer per request.
        // `pipeline_flush` stays off: hyper would buffer without limit for a client that does not read.
        http1.header_read_timeout(None).half_close(false);
        // The buffer size alone would accept a larger head if its end arrives with the bytes that exceed the limit.
        let max_header_bytes = limits.max_header_bytes as usize;
        http1.max_header_size(max_header_bytes).max_buf_size(max_header_bytes.max(8192));
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
        Self { handler, limits, http1, http2, open, stopping, drain }
    }

    /// Serves one connection until it ends.
    pub async fn connection(&self, accepted: AcceptedConnection) {
        let connection = Arc::new(Connection::new(&accepted.peer));
        let _open = self.open.add(&connection);
        let is_http2 = accepted.peer.is_http2();
        let (activity, exchange) = (connection.activity.clone(), connection.own_exchange().clone());
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
    ) -> impl HttpService<Incoming, ResBody = Body, Error = NoResponse, Future: Send + Unpin + 'static> + use<H>
    {
        let (handler, stopping) = (RefCell::new(self.handler.clone()), self.stopping.clone());
        service_fn(move |request: http::Request<Incoming>| {
            let (connection, stopping) = (connection.clone(), stopping.clone());
            let busy = connection.activity.start_request();
            connection.own_exchange().start_request();
            let refusal = wellformed::refusal(&request);
            let is_http2 = request.version() == Version::HTTP_2;
            let is_head = request.method() == Method::HEAD && is_http2;
            let (request, unread) = ReceivedBody::wrap_request(request);
            // A client that waits for permission to send a body sends none after a response.
            let unread = unread.filter(|_| !request.headers().contains_key(EXPECT));
            let answer = if let Some(refusal) = refusal {
                Either::Left(ready(Ok(refusal)))
            } else {
                let mut request = request.map(Body::from);
                request.extensions_mut().insert(connection.clone());
                Either::Right(handler.borrow_mut().call(request))
            };
            // Boxed, so that the state of the layers is freed when the head of the response is ready, and not only at the end of
            // a body that streams (a watch).
            Box::pin(async move {
                let Ok(mut response) = answer.await;
                if let Some(no_response) = response.extensions().get::<NoResponse>() {
                    return Err(*no_response);
                }
                if let Some(unread) = unread {
                    unread.drain(MAX_UNREAD_BYTES, UNREAD_TIMEOUT).await;
                }
                connection.exchange().record_handover();
                if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                    connection.activity.upgrade();
                } else if !is_http2 && stopping.is_signaled() {
                    connection.close_after(is_http2, &mut response);
                }
                response.body_mut().keep_busy_until_sent(busy);
                if is_head {
                    withhold_body(&mut response);
                }
                Ok(response)
            })
        })
    }

    /// Polls the connection until it ends; starts a graceful end at a drain, a GOAWAY, or the idle timeout.
    async fn run<C>(
        &self,
        connection: &Connection,
        mut conn: std::pin::Pin<&mut C>,
        start_shutdown: fn(std::pin::Pin<&mut C>),
    ) where
        C: Future<Output = hyper::Result<()>>,
    {
        // A set with one element polls the wait only when the wait is woken, not whenever the connection is.
        let mut end_waits = FuturesUnordered::from_iter([Either::Left(self.wait_for_end(connection))]);
        loop {
            tokio::select! {
                biased;
                ended = conn.as_mut() => {
                    if let Err(error) = ended {
                        let error = client_http_reason(&error);
                        tracing::debug!(peer = %connection.peer, error, "client connection failed");
                    }
                    return;
                }
                ending = end_waits.next() => if ending != Some(ConnectionEnd::Finish) {
                    tracing::debug!(peer = %connection.peer, "closing a slow or idle connection");
                    return;
                },
            }
            start_shutdown(conn.as_mut());
            end_waits.push(Either::Right(self.wait_until_overdue(connection)));
        }
    }

    /// Waits until the connection should finish, or must be closed.
    async fn wait_for_end(&self, connection: &Connection) -> ConnectionEnd {
        let mut drain = self.drain.clone();
        loop {
            let next_check = tokio::time::sleep(connection.activity.next_check(&self.limits));
            tokio::select! {
                biased;
                () = drain.signaled() => return ConnectionEnd::Finish,
                () = connection.wait_for_go_away() => return ConnectionEnd::Finish,
                () = connection.wait_for_close() => if connection.confirm_close() {
                    return ConnectionEnd::Close;
                },
                () = next_check => match connection.activity.verdict(&self.limits) {
                    Verdict::Healthy => {}
                    Verdict::Idle => return ConnectionEnd::Finish,
                    Verdict::SlowHead => return ConnectionEnd::Close,
                },
            }
        }
    }

    /// Waits until a connection that is finishing must be closed: its client is inactive, or continues to send requests (h2
    /// accepts them until the client has answered the PING after GOAWAY, which it can omit).
    async fn wait_until_overdue(&self, connection: &Connection) -> ConnectionEnd {
        let deadline = Instant::now() + GOAWAY_TIMEOUT;
        let mut request_count = None;
        while connection.activity.verdict(&self.limits) == Verdict::Healthy {
            tokio::select! {
                () = connection.wait_for_close() => if connection.confirm_close() {
                    break;
                },
                () = tokio::time::sleep(self.limits.check_interval()) => {}
            }
            if Instant::now() < deadline {
                continue;
            }
            let count = connection.activity.request_count();
            if *request_count.get_or_insert(count) != count {
                break;
            }
        }
        ConnectionEnd::Close
    }
}

/// Turns the response to a GET into one to a HEAD request: hyper would send its body over HTTP/2.
fn withhold_body(response: &mut Response) {
    let length = response.body().size_hint().exact().filter(|length| *length > 0);
    response.body_mut().clear();
    if let Some(length) = length {
        response.headers_mut().entry(CONTENT_LENGTH).or_insert_with(|| length.into());
    }
}

/// End of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionEnd {
    /// Graceful: after the requests in progress.
    Finish,
    /// Closed at once.
    Close,
}
