//! Body of a response, with the connection or stream that carries it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use portico_kit::dial::http_reason;
use portico_kit::received_body::{ReceiveError, ReceivedBody};

use super::http1::Http1;
use super::http2::Http2Stream;
use super::registry::Permit;
use super::send_error::broken_off;
use crate::request_body::BoxError;

/// Connection or stream that carries a response.
pub(crate) enum Carrier {
    Http1(Http1),
    Http2(Http2Stream),
}

/// Body of a response. Dropping it before its end closes the connection, or resets the stream.
pub(crate) struct ResponseBody {
    incoming: ReceivedBody,
    lease: Option<Lease>,
    failure: Option<BoxError>,
}

/// Resources in use until the end of the body. The connection then returns to its target.
struct Lease {
    carrier: Carrier,
    permit: Permit,
    /// Index of the target, or `None` for a connection that is used once.
    target: Option<usize>,
}

impl ResponseBody {
    /// Creates a body over this carrier; without a target, its connection is closed at the end.
    pub(crate) fn new(
        incoming: ReceivedBody,
        carrier: Carrier,
        permit: Permit,
        target: Option<usize>,
    ) -> Self {
        let mut body = Self { incoming, lease: Some(Lease { carrier, permit, target }), failure: None };
        if body.incoming.is_end_stream() {
            body.release();
        }
        body
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
            Some(Err(error)) => {
                // Returned at the next poll: the listener discards unflushed data when a body fails, and the client should get
                // the data that arrived.
                self.failure = Some(broken_off(&self.reason(&error)));
                self.lease = None;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            frame => {
                if frame.is_none() || self.incoming.is_end_stream() {
                    self.release();
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
        }
    }

    /// Returns the reason for which the body broke off: the request's body may have failed first.
    fn reason(&self, error: &ReceiveError) -> String {
        let ReceiveError::Http(http) = error else { return error.to_string() };
        match &self.lease {
            Some(Lease { carrier: Carrier::Http2(stream), .. }) => stream.failure(http).to_string(),
            Some(Lease { carrier: Carrier::Http1(connection), .. }) => {
                connection.body_failure().unwrap_or_else(|| http_reason(http))
            }
            None => http_reason(http),
        }
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream() && self.failure.is_none()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }

    fn release(&mut self) {
        if let Some(Lease { carrier: Carrier::Http1(connection), permit, target: Some(target) }) =
            self.lease.take()
            && connection.is_reusable()
        {
            permit.transport().put_back(target, connection);
        }
    }
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnswerBody").field("incoming", &self.incoming).finish_non_exhaustive()
    }
}
