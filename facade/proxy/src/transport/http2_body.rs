//! An answer's body with the stream that it comes over.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use portico_kit::received::{ReceiveError, Received};

use super::http2::Stream;
use super::registry::Permit;
use super::send_error::broken_off;
use crate::request_body::BoxError;

/// An answer's body. Dropping it early resets the stream.
pub(crate) struct Http2Body {
    incoming: Received,
    stream: Stream,
    _permit: Permit,
}

impl Http2Body {
    pub(crate) fn new(incoming: Received, stream: Stream, permit: Permit) -> Self {
        Self { incoming, stream, _permit: permit }
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
            None => None,
            Some(Ok(frame)) => Some(Ok(frame)),
            Some(Err(ReceiveError::Http(error))) => {
                Some(Err(broken_off(&self.stream.failure(&error).to_string())))
            }
            Some(Err(error @ ReceiveError::Reset)) => Some(Err(broken_off(&error.to_string()))),
        })
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl std::fmt::Debug for Http2Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http2Body").finish_non_exhaustive()
    }
}
