//! An answer's body with the connection that it comes from.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use portico_kit::dial::io_reason;

use super::http1::{Decoded, Decoder, Http1, UploadError};
use super::registry::Permit;
use super::send_error::broken_off;
use crate::request_body::BoxError;

/// Dropping it before its end closes the connection.
pub(crate) struct Http1Body {
    decoder: Decoder,
    lease: Option<Lease>,
    failure: Option<BoxError>,
}

/// A connection in use. It goes back to its target when the answer is complete, and is closed otherwise.
struct Lease {
    connection: Box<Http1>,
    permit: Permit,
    /// The target's number, or nothing for a connection that is used once.
    target: Option<usize>,
}

type Polled = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

impl Http1Body {
    /// A body over this connection; without a target, the connection is closed after it.
    pub(crate) fn new(
        decoder: Decoder,
        connection: Box<Http1>,
        permit: Permit,
        target: Option<usize>,
    ) -> Self {
        let mut body = Self { decoder, lease: Some(Lease { connection, permit, target }), failure: None };
        body.release_at_end();
        body
    }

    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Polled {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        match ready!(self.poll_decoded(cx)) {
            Ok(frame) => Poll::Ready(frame.map(Ok)),
            Err(failure) => {
                // Returned at the next poll: our listener throws away what it has not flushed when a body fails, and
                // the client should get what there was.
                self.lease = None;
                self.failure = Some(failure);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    fn poll_decoded(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, BoxError>> {
        loop {
            let Some(lease) = &mut self.lease else { return Poll::Ready(Ok(None)) };
            let connection = &mut *lease.connection;
            let frame = match self.decoder.decode(&mut connection.read)? {
                Decoded::Data(data) => Some(Frame::data(data)),
                Decoded::Trailers(trailers) => Some(Frame::trailers(trailers)),
                Decoded::End => None,
                Decoded::More => {
                    // The request may still be being sent. When its body fails, so does the exchange; a backend that
                    // takes no more of it may answer all the same.
                    if let Poll::Ready(Err(UploadError::Body(error))) = connection.poll_upload(cx) {
                        return Poll::Ready(Err(error.into()));
                    }
                    match ready!(connection.poll_fill(cx)) {
                        Ok(0) if self.decoder == Decoder::UntilClose => None,
                        Ok(0) => return Poll::Ready(Err(broken_off("EOF"))),
                        Ok(_) => continue,
                        Err(error) => return Poll::Ready(Err(broken_off(io_reason(&error)))),
                    }
                }
            };
            if frame.is_none() {
                self.decoder = Decoder::Length(0);
            }
            self.release_at_end();
            return Poll::Ready(Ok(frame));
        }
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.decoder.is_done() && self.failure.is_none()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        match self.decoder {
            Decoder::Length(left) => SizeHint::with_exact(left),
            _ => SizeHint::default(),
        }
    }

    fn release_at_end(&mut self) {
        if self.decoder.is_done()
            && let Some(Lease { mut connection, permit, target: Some(target) }) = self.lease.take()
            && connection.is_reusable()
        {
            permit.transport().put(target, connection);
        }
    }
}

impl std::fmt::Debug for Http1Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http1Body").field("decoder", &self.decoder).finish_non_exhaustive()
    }
}
