//! A body that is kept while it streams by, for whoever gets a copy when all of it was there.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

use crate::request_body::{BoxError, RequestBody};

/// See the module. What is longer than allowed, cut, or given up is no copy: `done` is dropped then.
pub(super) struct Tee<F> {
    body: RequestBody,
    kept: Option<Kept<F>>,
}

struct Kept<F> {
    chunks: BytesMut,
    most: usize,
    /// The length of all, where it is declared: the sender need not ask for the end of the body.
    whole: Option<u64>,
    done: F,
}

impl<F: FnOnce(Bytes)> Tee<F> {
    /// Calls `done` with the body, if it has at most so many bytes.
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
            // Copied: a chunk may be a small part of a large buffer.
            kept.chunks.extend_from_slice(data);
        }
    }

    /// Whether as much has come as was declared.
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
