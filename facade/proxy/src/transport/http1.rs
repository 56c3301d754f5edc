//! One HTTP/1.1 connection to a backend. hyper drives it in a task of the runtime that opened it; it
//! carries one request at a time.

use std::sync::Arc;

use http::{HeaderValue, Response};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use portico_kit::dial::{Connection, http_reason};
use portico_kit::received_body::ReceivedBody;
use portico_kit::tasks::TaskSet;
use tokio::runtime::{Handle, Id};
use tokio::time::Instant;

use super::open_connections::OpenConnection;
use super::send_error::SendError;
use super::upload::{Upload, UploadStatus};
use crate::outgoing_request::OutgoingRequest;

/// Size of the response head of a backend.
///
/// Limit (Backends, bytes): 502.
const MAX_HEAD_BYTES: usize = 1 << 20;
/// Error of an exchange whose backend closes the connection without a response.
const CLOSED: &str = "EOF: the backend closed the connection before it answered";
/// Task name of a connection, for logs.
const TASK_NAME: &str = "proxy-http1-connection";

pub(crate) struct Http1 {
    sender: http1::SendRequest<Upload>,
    /// Upload status of the current request.
    exchange: Arc<UploadStatus>,
    /// Generation of the client certificate with which the connection was opened.
    pub(super) generation: u64,
    pub(super) idle_since: Instant,
    /// Runtime that receives the connection's events.
    pub(super) runtime: Id,
}

/// Reason for a missing response.
pub(crate) enum Http1Error {
    /// The request was not sent: another connection may carry it.
    Unsent(SendError),
    /// A part of the request was sent, or may have been.
    Broken(SendError),
}

/// A connection and the response to its request.
pub(crate) type Http1Response = (Http1, Response<ReceivedBody>);

impl Http1 {
    pub(super) async fn open(
        io: Connection,
        generation: u64,
        tasks: &TaskSet,
        open: OpenConnection,
    ) -> Result<Self, hyper::Error> {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(MAX_HEAD_BYTES);
        let (sender, connection) = builder.handshake(TokioIo::new(io)).await?;
        tasks.spawn_until_cancelled(TASK_NAME, async move {
            let _open = open;
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(error = http_reason(&error), "HTTP/1.1 connection to a backend failed");
            }
        });
        Ok(Self {
            sender,
            exchange: Arc::default(),
            generation,
            idle_since: Instant::now(),
            runtime: Handle::current().id(),
        })
    }

    /// Returns true if the connection can carry another request after a response.
    pub(super) fn is_reusable(&self) -> bool {
        // A request that is still being sent would delay the next one.
        self.exchange.is_sent() && !self.is_closed()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Sends a request and waits for the response head. Dropping the future cancels the request and closes the connection.
    pub(crate) async fn send(
        mut self,
        request: &mut OutgoingRequest<'_>,
        authority: &HeaderValue,
    ) -> Result<Http1Response, Http1Error> {
        if self.sender.ready().await.is_err() {
            return Err(Http1Error::Unsent(SendError::Http("the connection had ended".to_owned())));
        }
        self.exchange = UploadStatus::for_body(&request.body);
        let sent = request.take_http1(authority).map(|body| Upload::new(body, &self.exchange));
        match self.sender.try_send_request(sent).await {
            Ok(response) => Ok((self, ReceivedBody::wrap_response(response))),
            Err(mut error) => Err(match error.take_message() {
                Some(unsent) => {
                    request.put_back(unsent.map(Upload::into_body));
                    Http1Error::Unsent(self.failure(&error.into_error()))
                }
                None => Http1Error::Broken(self.failure(&error.into_error())),
            }),
        }
    }

    /// Returns the reason for which the request's body failed, if it did.
    pub(super) fn body_failure(&self) -> Option<String> {
        self.exchange.take_failure().map(|failure| failure.to_string())
    }

    /// Returns the failure of the request's body if it failed first, or else that of the connection.
    pub(super) fn failure(&self, error: &hyper::Error) -> SendError {
        self.exchange.take_failure().unwrap_or_else(|| {
            let closed = error.is_incomplete_message() || error.is_closed() || error.is_canceled();
            SendError::Http(if closed { CLOSED.to_owned() } else { http_reason(error) })
        })
    }
}

#[cfg(test)]
mod tests;
