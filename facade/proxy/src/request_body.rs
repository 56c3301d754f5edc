//! Bodies of requests, which stream through the proxy: chunks are forwarded as they arrive and are not collected.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use portico_kit::received_body::ReceivedBody;

use crate::headers;

/// Error that ended a body early.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Body of a request: as the listener reads it, or wrapped by a filter.
#[derive(Debug)]
pub struct RequestBody {
    kind: RequestKind,
    /// Trailers that the request head announces; other trailers are not forwarded.
    trailers: Box<[HeaderName]>,
}

#[derive(Debug)]
enum RequestKind {
    Empty,
    Received(ReceivedBody),
    Boxed(UnsyncBoxBody<Bytes, BoxError>),
    /// The body failed. Every later poll fails as well, so that no reader mistakes the failure for the end.
    Failed,
}

/// Error of a body that failed before; the reason was returned then.
#[derive(Debug, thiserror::Error)]
#[error("the request body failed")]
struct FailedBefore;

impl RequestBody {
    /// No body.
    pub fn empty() -> Self {
        Self::with_kind(RequestKind::Empty)
    }

    fn with_kind(kind: RequestKind) -> Self {
        Self { kind, trailers: Box::default() }
    }

    /// Sets the trailers that these headers, which the backend gets, announce.
    pub(crate) fn with_trailers_of(mut self, headers: &HeaderMap) -> Self {
        self.trailers = headers::announced_trailers(headers);
        self
    }

    /// Wraps the body in a filter. The trailers that are forwarded stay the same.
    pub(crate) fn filtered<B>(self, filter: impl FnOnce(Self) -> B) -> Self
    where
        B: Body<Data = Bytes, Error = BoxError> + Send + 'static,
    {
        let trailers = self.trailers.clone();
        Self { trailers, ..Self::new(filter(self)) }
    }

    /// Creates a body that a filter has wrapped. [`RequestBody::from`] a [`ReceivedBody`] body costs less.
    pub fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if body.is_end_stream() {
            return Self::empty();
        }
        Self::with_kind(RequestKind::Boxed(body.map_err(Into::into).boxed_unsync()))
    }
}

impl Default for RequestBody {
    fn default() -> Self {
        Self::empty()
    }
}

impl From<ReceivedBody> for RequestBody {
    fn from(body: ReceivedBody) -> Self {
        if body.is_end_stream() {
            return Self::empty();
        }
        Self::with_kind(RequestKind::Received(body))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let polled = match &mut this.kind {
            RequestKind::Empty => None,
            RequestKind::Received(body) => {
                ready!(Pin::new(body).poll_frame(cx)).map(|frame| frame.map_err(Into::into))
            }
            RequestKind::Boxed(body) => ready!(Pin::new(body).poll_frame(cx)),
            RequestKind::Failed => Some(Err(FailedBefore.into())),
        };
        if let Some(Err(_)) = polled {
            this.kind = RequestKind::Failed;
        }
        Poll::Ready(polled.map(|frame| {
            let mut frame = frame?;
            if let Some(trailers) = frame.trailers_mut() {
                headers::keep_announced(trailers, &this.trailers);
            }
            Ok(frame)
        }))
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            RequestKind::Empty => true,
            RequestKind::Received(body) => body.is_end_stream(),
            RequestKind::Boxed(body) => body.is_end_stream(),
            RequestKind::Failed => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            RequestKind::Empty => SizeHint::with_exact(0),
            RequestKind::Received(body) => body.size_hint(),
            RequestKind::Boxed(body) => body.size_hint(),
            RequestKind::Failed => SizeHint::default(),
        }
    }
}
