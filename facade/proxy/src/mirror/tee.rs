//! A body that is copied while it streams; the copy is delivered when the body is complete.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

use crate::request_body::{BoxError, RequestBody};

/// A body with a copy. If the body exceeds the limit, breaks off or is dropped early, `on_complete` is dropped without a call.
pub(super) struct Tee<F> {
    body: RequestBody,
    kept: Option<Kept<F>>,
}

struct Kept<F> {
    chunks: BytesMut,
    most: usize,
    /// Declared length, if known: the reader need not poll for the end of the body.
    whole: Option<u64>,
    done: F,
}

impl<F: FnOnce(Bytes)> Tee<F> {
    /// Calls `on_complete` with the body if it has at most `max_bytes` bytes.
    pub(super) fn new(body: RequestBody, most: usize, done: F) -> Self {
        let whole = body.size_hint().exact();
        Self { body, kept: Some(Kept { chunks: BytesMut::new(), most, whole, done }) }
    }

    fn keep(&mut self, frame: &Frame<Bytes>) {
        let Some(kept) = &mut self.kept else { return };
        let Some(data) = frame.data_ref() else { return };
        if kept.chunks.len() + data.len() > kept.most {
            self.kept = None;
        } else {
            // Copied because a chunk may be a small part of a large buffer.
            kept.chunks.extend_from_slice(data);
        }
    }

    /// Returns true if the declared length has arrived.
    fn is_whole(&self) -> bool {
        let kept = self.kept.as_ref();
        kept.is_some_and(|kept| kept.whole == u64::try_from(kept.chunks.len()).ok())
    }

    fn complete(&mut self) {
        if let Some(Kept { chunks, done, .. }) = self.kept.take() {
            done(chunks.freeze());
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
            Some(Ok(frame)) => this.keep(frame),
            Some(Err(_)) => this.kept = None,
            None => {}
        }
        if polled.is_none() || this.body.is_end_stream() || this.is_whole() {
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
