//! One bounded HTTP request with a small or no body, on a new connection or on an idle connection of the pool.
//!
//! Used for availability probes, discovery and OpenAPI documents, and webhook calls: one deadline for the whole exchange, a limit
//! for the body, no redirects. Does not interpret the response.

mod pool;
mod target;

pub use target::FetchTarget;

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use tokio::time::{Instant, timeout_at};

use crate::dial::{Connector, DialError, Target, http_reason};
use crate::received_body::{ReceiveError, ReceivedBody};
use crate::spans;
use crate::tasks::TaskSet;
use pool::{Pool, PoolKey, Sender};

/// HTTP request with its limits.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// Method. The request may be sent a second time, so it must be a GET, a DELETE, a write with preconditions, or a review for
    /// a webhook, which upstream repeats as well.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Headers other than Host.
    pub headers: HeaderMap,
    /// Time from the first step of the dial to the last byte of the body.
    pub timeout: Duration,
    /// Request body; `headers` contain its content type.
    pub body: Bytes,
    /// Maximum size of the response body; a longer one is an error.
    pub max_body_bytes: usize,
}

/// Response with any status.
#[derive(Clone, Debug)]
pub struct FetchResponse {
    /// Status code.
    pub status: StatusCode,
    /// Response headers.
    pub headers: HeaderMap,
    /// Complete body.
    pub body: Bytes,
    /// True if the request was sent on an idle connection of the pool.
    pub reused: bool,
}

/// Error of a request without a response.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The connection could not be established.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The exchange failed: the backend closed or reset the connection, or sent invalid HTTP.
    #[error("no valid response from {target}: {reason}")]
    Http {
        /// Target of the request.
        target: Target,
        /// Reason of the failure.
        reason: String,
        /// Cause of the end of the connection.
        end: ConnectionEnd,
        /// Progress of the exchange when it failed.
        progress: Progress,
    },
    /// The deadline passed.
    #[error("no response from {target} within {}", portico_gostd::time::format_duration(*after))]
    Timeout {
        /// Target of the request.
        target: Target,
        /// Timeout of the request.
        after: Duration,
        /// Progress of the exchange when the deadline passed.
        progress: Progress,
    },
    /// The response body exceeds the limit.
    #[error("the response of {target} is longer than {limit} bytes")]
    TooLong {
        /// Target of the request.
        target: Target,
        /// Limit in bytes.
        limit: usize,
    },
    /// The path, host or a header is not valid in HTTP.
    #[error("cannot send a request for {}: {reason}", portico_gostd::strconv::quote(path))]
    Request {
        /// Path of the request.
        path: String,
        /// Reason of the rejection.
        reason: String,
    },
}

/// Progress of an exchange when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// No connection was established.
    Dialing,
    /// The connection was established, and no response had arrived.
    Waiting,
    /// The response body was being read.
    Reading,
}

/// Cause of the end of a connection without a valid response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// The peer closed the connection.
    Closed,
    /// The peer reset the connection.
    Reset,
    /// The peer does not speak HTTP, or this side gave up.
    Other,
}

/// HTTP client with a pool of idle connections. Cheap to clone.
#[derive(Clone)]
pub struct Fetcher {
    connector: Connector,
    tasks: TaskSet,
    pool: Pool,
    lost_callback: Arc<OnceLock<LostCallback>>,
}

/// Callback for the target of an idle connection that the peer has closed.
pub type LostCallback = Box<dyn Fn(&Target) + Send + Sync>;

/// Failure of an exchange: `Stale` failures of idle connections are retried on a new one.
enum ExchangeError {
    Stale(FetchError),
    Final(FetchError),
}

impl Fetcher {
    /// Returns a client whose connections are driven by tasks in `tasks`.
    pub fn new(connector: Connector, tasks: TaskSet) -> Self {
        Self { connector, tasks, pool: Pool::default(), lost_callback: Arc::default() }
    }

    /// Sets the number of idle connections that each serving thread keeps per target.
    pub fn with_idle_per_target(mut self, per_target: usize) -> Self {
        self.pool = Pool::new(per_target);
        self
    }

    /// Returns the connector that dials.
    pub fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Sends the request once. If an idle connection turns out to be closed, sends it a second time on a new connection, but
    /// never a third time. Returns responses of any status.
    pub async fn send(&self, to: &FetchTarget, request: &FetchRequest) -> Result<FetchResponse, FetchError> {
        let deadline = Instant::now() + request.timeout;
        let message = build_request(to, request)?;
        self.exchange(to, request, message, deadline).await
    }

    /// Closes the idle connections to a target, as upstream does after a failed probe.
    pub fn close_idle(&self, to: &FetchTarget) {
        self.pool.close_idle(&PoolKey::for_target(to));
    }

    /// Sets the callback for idle connections that the peer closes: the backend may be gone. Only the first call has an effect.
    pub fn on_lost(&self, notify: LostCallback) {
        // The callback is already set.
        let _ = self.lost_callback.set(notify);
    }

    /// Returns the number of idle connections.
    pub fn idle_count(&self) -> usize {
        self.pool.len()
    }

    async fn exchange(
        &self,
        to: &FetchTarget,
        request: &FetchRequest,
        message: Request<Full<Bytes>>,
        deadline: Instant,
    ) -> Result<FetchResponse, FetchError> {
        let key = PoolKey::for_target(to);
        if let Some(sender) = self.pool.take(&key) {
            match self.try_send(to, &key, request, message.clone(), (sender, true), deadline).await {
                Err(ExchangeError::Stale(_)) => {}
                Err(ExchangeError::Final(error)) => return Err(error),
                Ok(response) => return Ok(response),
            }
        }
        let connecting = timeout_at(deadline, self.connect(to, &key)).await;
        let sender = connecting.map_err(|_| timeout_error(to, request, Progress::Dialing))??;
        let sent = self.try_send(to, &key, request, message, (sender, false), deadline).await;
        sent.map_err(|failed| match failed {
            ExchangeError::Final(error) | ExchangeError::Stale(error) => error,
        })
    }

    async fn connect(&self, to: &FetchTarget, key: &PoolKey) -> Result<Sender, FetchError> {
        let connection = match &to.tls {
            Some(tls) => self.connector.connect_tls(&to.target, tls).await?,
            None => self.connector.connect_plain(&to.target).await?,
        };
        let (pool, lost, key) = (self.pool.clone(), self.lost_callback.clone(), key.clone());
        let ended = move || {
            if pool.drop_closed(&key)
                && let Some(notify) = lost.get()
            {
                notify(&key.target);
            }
        };
        let sender = Sender::handshake(connection, &self.tasks, ended).await;
        sender.map_err(|error| http_error(to, &error, Progress::Waiting))
    }

    async fn try_send(
        &self,
        to: &FetchTarget,
        key: &PoolKey,
        request: &FetchRequest,
        message: Request<Full<Bytes>>,
        (mut sender, reused): (Sender, bool),
        deadline: Instant,
    ) -> Result<FetchResponse, ExchangeError> {
        let late = |progress| ExchangeError::Final(timeout_error(to, request, progress));
        let sent = timeout_at(deadline, sender.send(message)).await.map_err(|_| late(Progress::Waiting))?;
        let response = sent.map_err(|error| {
            // Closed before a response began: a backend may close an idle connection at any time.
            let stale = reused
                && (error.is_canceled()
                    || error.is_closed()
                    || error.is_incomplete_message()
                    || is_reset(&error));
            let failure = http_error(to, &error, Progress::Waiting);
            if stale { ExchangeError::Stale(failure) } else { ExchangeError::Final(failure) }
        })?;
        let (head, body) = response.into_parts();
        let reading = timeout_at(deadline, read_body(body, to, request.max_body_bytes)).await;
        let body = reading.map_err(|_| late(Progress::Reading))?.map_err(ExchangeError::Final)?;
        self.pool.put(key, sender);
        Ok(FetchResponse { status: head.status, headers: head.headers, body, reused })
    }
}

async fn read_body(mut body: ReceivedBody, to: &FetchTarget, limit: usize) -> Result<Bytes, FetchError> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| receive_error(to, &error))?;
        let Some(data) = frame.data_ref() else { continue };
        if whole.len() + data.len() > limit {
            return Err(FetchError::TooLong { target: to.target.clone(), limit });
        }
        whole.extend_from_slice(data);
    }
    Ok(whole.freeze())
}

fn build_request(to: &FetchTarget, request: &FetchRequest) -> Result<Request<Full<Bytes>>, FetchError> {
    let invalid = |reason: String| FetchError::Request { path: request.path.clone(), reason };
    let authority = to.host.clone().unwrap_or_else(|| to.target.to_string());
    let scheme = if to.tls.is_some() { "https" } else { "http" };
    let uri =
        Uri::builder().scheme(scheme).authority(authority).path_and_query(request.path.as_str()).build();
    let uri = uri.map_err(|_| invalid("its host or path is not valid".to_owned()))?;
    let mut message = Request::new(Full::new(request.body.clone()));
    *message.method_mut() = request.method.clone();
    *message.uri_mut() = uri;
    *message.headers_mut() = request.headers.clone();
    spans::inject(message.headers_mut());
    Ok(message)
}

fn http_error(to: &FetchTarget, error: &hyper::Error, progress: Progress) -> FetchError {
    let closed = error.is_incomplete_message() || error.is_closed() || error.is_canceled();
    let end = match io_kind(error) {
        Some(io::ErrorKind::ConnectionReset) => ConnectionEnd::Reset,
        Some(io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof) => ConnectionEnd::Closed,
        _ if closed => ConnectionEnd::Closed,
        _ => ConnectionEnd::Other,
    };
    FetchError::Http { target: to.target.clone(), reason: http_reason(error), end, progress }
}

fn receive_error(to: &FetchTarget, error: &ReceiveError) -> FetchError {
    match error {
        ReceiveError::Http(error) => http_error(to, error, Progress::Reading),
        ReceiveError::Reset => {
            let (reason, end) = (error.to_string(), ConnectionEnd::Reset);
            FetchError::Http { target: to.target.clone(), reason, end, progress: Progress::Reading }
        }
    }
}

fn timeout_error(to: &FetchTarget, request: &FetchRequest, progress: Progress) -> FetchError {
    FetchError::Timeout { target: to.target.clone(), after: request.timeout, progress }
}

fn is_reset(error: &hyper::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(io_kind(error), Some(ConnectionReset | BrokenPipe | UnexpectedEof))
}

fn io_kind(error: &hyper::Error) -> Option<io::ErrorKind> {
    let cause = std::error::Error::source(error)?.downcast_ref::<io::Error>()?;
    Some(cause.kind())
}

#[cfg(test)]
mod tests;
