//! HTTP/2 connections to a backend: several requests on each; another connection is opened when one is full.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use portico_kit::dial::{Connection, http_reason};
use portico_kit::received_body::ReceivedBody;
use portico_kit::tasks::TaskSet;

use super::open_connections::OpenConnection;
use super::send_error::{SendError, from_http2};
use super::upload::{Upload, UploadStatus};
use crate::request_body::RequestBody;
use crate::settings::Limits;

const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
const MAX_HEADER_BYTES: u32 = 1 << 20;
/// Task name of a connection, for logs.
const TASK_NAME: &str = "proxy-http2-connection";

/// A connection. Its task ends when the last handle and the last stream are dropped.
pub(super) struct Http2 {
    sender: http2::SendRequest<Upload>,
    streams: AtomicUsize,
    pub(super) generation: u64,
}

/// Permission for one stream on a connection.
pub(crate) struct Http2Stream {
    connection: Arc<Http2>,
    /// Upload status of the request; the upload, sent by a task of the connection, ends with it.
    exchange: Arc<UploadStatus>,
}

pub(super) enum Http2Error {
    /// The backend has not started to process the request (GOAWAY, or a closed connection).
    Unsent(Box<Request<RequestBody>>),
    Broken(SendError),
}

impl Http2 {
    pub(super) async fn open(
        io: Connection,
        generation: u64,
        tasks: &TaskSet,
        limits: &Limits,
        open: OpenConnection,
    ) -> Result<Arc<Self>, hyper::Error> {
        let (sender, connection) = http2::Builder::new(tasks.executor(TASK_NAME))
            .timer(TokioTimer::new())
            .keep_alive_interval(limits.http2_ping_interval)
            .keep_alive_timeout(limits.http2_ping_timeout)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(MAX_HEADER_BYTES)
            .handshake(TokioIo::new(io))
            .await?;
        tasks.spawn_until_cancelled(TASK_NAME, async move {
            let _open = open;
            if let Err(error) = connection.await {
                tracing::debug!(error = http_reason(&error), "HTTP/2 connection to a backend failed");
            }
        });
        Ok(Arc::new(Self { sender, streams: AtomicUsize::new(0), generation }))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.streams.load(Ordering::Relaxed) == 0
    }

    /// Returns a stream, unless there are `max` already. Called under the pool's lock.
    pub(super) fn join(self: &Arc<Self>, max: usize) -> Option<Http2Stream> {
        if self.streams.fetch_add(1, Ordering::AcqRel) >= max {
            self.streams.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        Some(Http2Stream { connection: self.clone(), exchange: Arc::default() })
    }
}

impl Http2Stream {
    pub(super) async fn send(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Response<ReceivedBody>, Http2Error> {
        let mut sender = self.connection.sender.clone();
        let request = request.map(|body| Upload::new(body, &self.exchange));
        match sender.try_send_request(request).await {
            Ok(response) => Ok(ReceivedBody::wrap_response(response)),
            Err(mut error) => Err(match error.take_message() {
                Some(request) => Http2Error::Unsent(Box::new(request.map(Upload::into_body))),
                None => Http2Error::Broken(self.failure(&error.into_error())),
            }),
        }
    }

    /// Returns the failure of the request's body if it failed first, or else that of the connection.
    pub(super) fn failure(&self, error: &hyper::Error) -> SendError {
        self.exchange.take_failure().unwrap_or_else(|| from_http2(error))
    }
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        self.connection.streams.fetch_sub(1, Ordering::AcqRel);
    }
}
