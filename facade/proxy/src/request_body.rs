//! Bodies of requests, which stream through the proxy. Chunks are handed on as they come; nothing is collected.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use portico_kit::received::Received;

use crate::headers;

/// Why a body ended early.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A request's body: as our listener reads it, or as a filter has wrapped it.
#[derive(Debug)]
pub struct RequestBody {
    kind: RequestKind,
    /// The trailers that its head announces: others are not passed on.
    trailers: Box<[HeaderName]>,
}

#[derive(Debug)]
enum RequestKind {
    Empty,
    Received(Received),
    Boxed(UnsyncBoxBody<Bytes, BoxError>),
    /// It failed, and goes on failing: whoever asks again must not take its silence for its end.
    Failed,
}

/// The reason was returned before.
#[derive(Debug, thiserror::Error)]
#[error("the request body failed")]
struct FailedBefore;

impl RequestBody {
    /// No body.
    pub fn empty() -> Self {
        Self::of(RequestKind::Empty)
    }

    fn of(kind: RequestKind) -> Self {
        Self { kind, trailers: Box::default() }
    }

    /// The body that follows this head, whose headers are those that the backend gets.
    pub(crate) fn behind(mut self, headers: &HeaderMap) -> Self {
        self.trailers = headers::announced_trailers(headers);
        self
    }

    /// The same body through a filter. The trailers that are passed on stay the same.
    pub(crate) fn through<B>(self, filter: impl FnOnce(Self) -> B) -> Self
    where
        B: Body<Data = Bytes, Error = BoxError> + Send + 'static,
    {
        let trailers = self.trailers.clone();
        Self { trailers, ..Self::new(filter(self)) }
    }

    /// A body that some filter has wrapped. [`RequestBody::from`] a [`Received`] one costs less.
    pub fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if body.is_end_stream() {
            return Self::empty();
        }
        Self::of(RequestKind::Boxed(body.map_err(Into::into).boxed_unsync()))
    }
}

impl Default for RequestBody {
    fn default() -> Self {
        Self::empty()
    }
}

impl From<Received> for RequestBody {
    fn from(body: Received) -> Self {
        if body.is_end_stream() {
            return Self::empty();
        }
        Self::of(RequestKind::Received(body))
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
