//! A request's body over HTTP/2, where a task of the connection sends it.
//!
//! The task and whoever awaits the answer end at different times. A body whose request was given up must not come
//! to a clean end, and why a body failed is known here only: the stream's reset does not carry it.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;

use crate::request_body::{BoxError, RequestBody};
use crate::transport::send_error::{SendError, body_error};

/// What belongs to whoever awaits the answer, or reads it.
#[derive(Default)]
pub(super) struct Exchange {
    failure: Mutex<Option<SendError>>,
}

impl Exchange {
    /// Why the request's body failed, once.
    pub(super) fn take_failure(&self) -> Option<SendError> {
        self.failure.lock().take()
    }
}

/// See the module.
pub(super) struct Upload {
    body: RequestBody,
    exchange: Weak<Exchange>,
}

#[derive(Debug, thiserror::Error)]
#[error("the request was given up")]
struct GivenUp;

impl Upload {
    pub(super) fn new(body: RequestBody, exchange: &Arc<Exchange>) -> Self {
        Self { body, exchange: Arc::downgrade(exchange) }
    }

    /// Nothing of it was sent.
    pub(super) fn into_body(self) -> RequestBody {
        self.body
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let Some(exchange) = self.exchange.upgrade() else { return Poll::Ready(Some(Err(GivenUp.into()))) };
        if let Some(Err(error)) = &polled {
            *exchange.failure.lock() = Some(body_error(error.as_ref()));
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
