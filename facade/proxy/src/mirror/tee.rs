//! A body that is copied while it streams; the copy is delivered when the body is complete.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

use crate::request_body::{BoxError, RequestBody};

/// A body with a copy. If the body exceeds the limit, breaks off or is dropped early, `on_complete` is dropped without a call.
pub(super) struct Tee<F> {
    body: RequestBody,
    capture: Option<Capture<F>>,
}

struct Capture<F> {
    chunks: BytesMut,
    max_bytes: usize,
    /// Declared length, if known: the reader need not poll for the end of the body.
    declared_length: Option<u64>,
    on_complete: F,
}

impl<F: FnOnce(Bytes)> Tee<F> {
    /// Calls `on_complete` with the body if it has at most `max_bytes` bytes.
    pub(super) fn new(body: RequestBody, max_bytes: usize, on_complete: F) -> Self {
        let declared_length = body.size_hint().exact();
        Self {
            body,
            capture: Some(Capture { chunks: BytesMut::new(), max_bytes, declared_length, on_complete }),
        }
    }

    fn capture_frame(&mut self, frame: &Frame<Bytes>) {
        let Some(capture) = &mut self.capture else { return };
        let Some(data) = frame.data_ref() else { return };
        if capture.chunks.len() + data.len() > capture.max_bytes {
            self.capture = None;
        } else {
            // Copied because a chunk may be a small part of a large buffer.
            capture.chunks.extend_from_slice(data);
        }
    }

    /// Returns true if the declared length has arrived.
    fn is_complete(&self) -> bool {
        let capture = self.capture.as_ref();
        capture.is_some_and(|capture| capture.declared_length == u64::try_from(capture.chunks.len()).ok())
    }

    fn complete(&mut self) {
        if let Some(Capture { chunks, on_complete, .. }) = self.capture.take() {
            on_complete(chunks.freeze());
        }
    }
}

impl<F: FnOnce(Bytes) + Unpin> Body for Tee<F> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let polled = ready!(Pin::new(&mut this.body).poll_frame(cx));
        match &polled {
            Some(Ok(frame)) => this.capture_frame(frame),
            Some(Err(_)) => this.capture = None,
            None => {}
        }
        if polled.is_none() || this.body.is_end_stream() || this.is_complete() {
            this.complete();
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
