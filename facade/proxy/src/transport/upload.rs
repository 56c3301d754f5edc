//! Body of a request, which a task of the connection sends.
//!
//! The task and the reader of the response end at different times. The body of a canceled request must not end
//! normally. The reason for a failed body is recorded here, because neither a reset stream nor a closed connection carries it.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;

use super::send_error::{SendError, body_error};
use crate::request_body::{BoxError, RequestBody};

/// Status of an upload, owned by the reader of the response.
#[derive(Default)]
pub(super) struct UploadStatus {
    failure: Mutex<Option<SendError>>,
    /// True if the complete body was passed to the connection.
    sent: AtomicBool,
}

impl UploadStatus {
    /// Creates the status of a request with this body.
    pub(super) fn for_body(body: &RequestBody) -> Arc<Self> {
        Arc::new(Self { sent: body.is_end_stream().into(), ..Self::default() })
    }

    /// Returns true if the complete body was passed to the connection.
    pub(super) fn is_sent(&self) -> bool {
        self.sent.load(Ordering::Acquire)
    }

    /// Takes the reason for which the request's body failed.
    pub(super) fn take_failure(&self) -> Option<SendError> {
        self.failure.lock().take()
    }
}

/// Body of a request. Fails if the reader of the response is gone.
pub(super) struct Upload {
    body: RequestBody,
    status: Weak<UploadStatus>,
}

#[derive(Debug, thiserror::Error)]
#[error("the request was canceled")]
struct RequestCanceled;

impl Upload {
    pub(super) fn new(body: RequestBody, status: &Arc<UploadStatus>) -> Self {
        Self { body, status: Arc::downgrade(status) }
    }

    /// Takes back the body of a request that was not sent.
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
        let Some(exchange) = self.status.upgrade() else {
            return Poll::Ready(Some(Err(RequestCanceled.into())));
        };
        if let Some(Err(error)) = &polled {
            *exchange.failure.lock() = Some(body_error(error.as_ref()));
        } else if polled.is_none() || self.body.is_end_stream() {
            exchange.sent.store(true, Ordering::Release);
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
