//! One bounded request with a small body, or none, over a dialed connection, on a kept connection when there is one.
//!
//! For availability probes, discovery and OpenAPI documents, and calls of webhooks: a deadline over everything, a limit for the
//! body, no redirects. It must not know what the answer means.

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
use crate::received::{ReceiveError, Received};
use crate::spans;
use crate::tasks::TaskSet;
use pool::{Key, Pool, Sender};

/// One request.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// What may be sent twice: GET, DELETE, a write that states what it expects, or a question to a webhook, which upstream repeats, too.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Headers besides Host.
    pub headers: HeaderMap,
    /// From the first step of the dial to the last byte of the body.
    pub timeout: Duration,
    /// What is sent; its type is among the headers.
    pub body: Bytes,
    /// A longer body of the answer is an error.
    pub max_body: usize,
}

/// An answer of any status.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Status code.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
    /// Whether it came over a kept connection.
    pub reused: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The connection.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The exchange: the backend closed, reset or spoke nonsense.
    #[error("no valid answer from {target}: {reason}")]
    Http {
        /// Whom.
        target: Target,
        /// What happened.
        reason: String,
        /// How the connection ended.
        ending: Ending,
        /// How far it was.
        progress: Progress,
    },
    /// The time was over.
    #[error("no answer from {target} within {}", portico_gostd::time::format_duration(*after))]
    Timeout {
        /// Whom.
        target: Target,
        /// The limit.
        after: Duration,
        /// How far it was by then.
        progress: Progress,
    },
    /// The body is too long.
    #[error("the answer of {target} is longer than {limit} bytes")]
    TooLong {
        /// Whom.
        target: Target,
        /// The limit.
        limit: usize,
    },
    /// Path, host or headers that HTTP does not allow.
    #[error("cannot send a request for {}: {reason}", portico_gostd::strconv::quote(path))]
    Request {
        /// The path.
        path: String,
        /// Why.
        reason: String,
    },
}

/// How far an exchange was when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There was no connection.
    Dialling,
    /// There was a connection, and no answer.
    Waiting,
    /// The body of the answer was read.
    Reading,
}

/// How a connection ended that brought no valid answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The other side closed it.
    Closed,
    /// The other side reset it.
    Reset,
    /// It speaks something else than HTTP, or this side gave up.
    Other,
}

/// Fetches, and keeps idle connections. Cheap to clone.
#[derive(Clone)]
pub struct Fetcher {
    connector: Connector,
    tasks: TaskSet,
    pool: Pool,
    lost: Arc<OnceLock<OnLost>>,
}

/// Is called with the key whose kept connection was closed by the other side.
pub type OnLost = Box<dyn Fn(&Target) + Send + Sync>;

/// What one exchange ended in: some failures on a kept connection are worth a fresh one.
enum Failed {
    Stale(FetchError),
    Final(FetchError),
}

impl Fetcher {
    /// Connections are driven by tasks in `tasks`.
    pub fn new(connector: Connector, tasks: TaskSet) -> Self {
        Self { connector, tasks, pool: Pool::default(), lost: Arc::default() }
    }

    /// The same, but as many idle connections are kept to one target, by each serving thread.
    pub fn keeping(mut self, per_target: usize) -> Self {
        self.pool = Pool::new(per_target);
        self
    }

    /// The connector behind it.
    pub fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Sends once. On a kept connection that turns out to be dead, once more on a fresh one; never
    /// again after that. Any status is an answer.
    pub async fn send(&self, to: &FetchTarget, request: &FetchRequest) -> Result<Fetched, FetchError> {
        let deadline = Instant::now() + request.timeout;
        let message = build(to, request)?;
        self.exchange(to, request, message, deadline).await
    }

    /// Closes the kept connections to a target: after a failed probe, as upstream does.
    pub fn forget(&self, to: &FetchTarget) {
        self.pool.forget(&Key::of(to));
    }

    /// Calls this whenever the other side closes a kept connection: it may be gone. The first one counts.
    pub fn on_lost(&self, notify: OnLost) {
        // Somebody listens already.
        let _ = self.lost.set(notify);
    }

    /// How many connections are kept.
    pub fn idle(&self) -> usize {
        self.pool.len()
    }

    async fn exchange(
        &self,
        to: &FetchTarget,
        request: &FetchRequest,
        message: Request<Full<Bytes>>,
        deadline: Instant,
    ) -> Result<Fetched, FetchError> {
        let key = Key::of(to);
        if let Some(sender) = self.pool.take(&key) {
            match self.try_send(to, &key, request, message.clone(), (sender, true), deadline).await {
                Err(Failed::Stale(_)) => {}
                Err(Failed::Final(error)) => return Err(error),
                Ok(fetched) => return Ok(fetched),
            }
        }
        let connecting = timeout_at(deadline, self.connect(to, &key)).await;
        let sender = connecting.map_err(|_| timed_out(to, request, Progress::Dialling))??;
        let sent = self.try_send(to, &key, request, message, (sender, false), deadline).await;
        sent.map_err(|failed| match failed {
            Failed::Final(error) | Failed::Stale(error) => error,
        })
    }

    async fn connect(&self, to: &FetchTarget, key: &Key) -> Result<Sender, FetchError> {
        let connection = match &to.tls {
            Some(tls) => self.connector.connect_tls(&to.target, tls).await?,
            None => self.connector.connect_plain(&to.target).await?,
        };
        let (pool, lost, key) = (self.pool.clone(), self.lost.clone(), key.clone());
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
        key: &Key,
        request: &FetchRequest,
        message: Request<Full<Bytes>>,
        (mut sender, reused): (Sender, bool),
        deadline: Instant,
    ) -> Result<Fetched, Failed> {
        let late = |progress| Failed::Final(timed_out(to, request, progress));
        let sent = timeout_at(deadline, sender.send(message)).await.map_err(|_| late(Progress::Waiting))?;
        let response = sent.map_err(|error| {
            // Closed before an answer began: a backend may close an idle connection at any time.
            let stale = reused
                && (error.is_canceled()
                    || error.is_closed()
                    || error.is_incomplete_message()
                    || is_reset(&error));
            let failure = http_error(to, &error, Progress::Waiting);
            if stale { Failed::Stale(failure) } else { Failed::Final(failure) }
        })?;
        let (head, body) = response.into_parts();
        let reading = timeout_at(deadline, read_whole(body, to, request.max_body)).await;
        let body = reading.map_err(|_| late(Progress::Reading))?.map_err(Failed::Final)?;
        self.pool.put(key, sender);
        Ok(Fetched { status: head.status, headers: head.headers, body, reused })
    }
}

async fn read_whole(mut body: Received, to: &FetchTarget, limit: usize) -> Result<Bytes, FetchError> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| not_received(to, &error))?;
        let Some(data) = frame.data_ref() else { continue };
        if whole.len() + data.len() > limit {
            return Err(FetchError::TooLong { target: to.target.clone(), limit });
        }
        whole.extend_from_slice(data);
    }
    Ok(whole.freeze())
}

fn build(to: &FetchTarget, request: &FetchRequest) -> Result<Request<Full<Bytes>>, FetchError> {
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
    spans::insert_into(message.headers_mut());
    Ok(message)
}

fn http_error(to: &FetchTarget, error: &hyper::Error, progress: Progress) -> FetchError {
    let closed = error.is_incomplete_message() || error.is_closed() || error.is_canceled();
    let ending = match io_kind(error) {
        Some(io::ErrorKind::ConnectionReset) => Ending::Reset,
        Some(io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof) => Ending::Closed,
        _ if closed => Ending::Closed,
        _ => Ending::Other,
    };
    FetchError::Http { target: to.target.clone(), reason: http_reason(error), ending, progress }
}

fn not_received(to: &FetchTarget, error: &ReceiveError) -> FetchError {
    match error {
        ReceiveError::Http(error) => http_error(to, error, Progress::Reading),
        ReceiveError::Reset => {
            let (reason, ending) = (error.to_string(), Ending::Reset);
            FetchError::Http { target: to.target.clone(), reason, ending, progress: Progress::Reading }
        }
    }
}

fn timed_out(to: &FetchTarget, request: &FetchRequest, progress: Progress) -> FetchError {
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
