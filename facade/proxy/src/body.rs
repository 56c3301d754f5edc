//! Bodies of answers, which stream through the proxy. Chunks are handed on as they come; nothing is collected.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::headers;
use crate::links::{Links, RewrittenBody};
use crate::request_body::BoxError;
use crate::transport::AnswerBody;

/// A response's body. Dropping it before its end closes the connection to the backend: an aborted client
/// cancels the request there.
#[derive(Debug)]
pub struct ProxyBody {
    kind: Kind,
    deadline: Option<Deadline>,
}

/// The timer is made when the body first makes its reader wait.
#[derive(Debug)]
enum Deadline {
    At(Instant),
    Running(Pin<Box<Sleep>>),
}

#[derive(Debug)]
enum Kind {
    Full(Option<Bytes>),
    Answer(AnswerBody),
    Rewritten(Box<RewrittenBody<ProxyBody>>),
}

impl Deadline {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Self::At(at) = self {
            *self = Self::Running(Box::pin(tokio::time::sleep_until(*at)));
        }
        match self {
            Self::At(_) => Poll::Pending,
            Self::Running(sleep) => sleep.as_mut().poll(cx),
        }
    }
}

impl ProxyBody {
    /// Bytes that are there already.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { kind: Kind::Full(Some(bytes).filter(|bytes| !bytes.is_empty())), deadline: None }
    }

    /// No bytes.
    pub fn empty() -> Self {
        Self { kind: Kind::Full(None), deadline: None }
    }

    /// The page with its links rewritten, whose length is not known any more. A page in an encoding that is not known here
    /// stays as it is.
    pub(crate) fn with_links(self, links: Links, headers: &mut HeaderMap) -> Self {
        if self.is_end_stream() {
            // To a HEAD, or an empty page.
            return self;
        }
        match RewrittenBody::wrap(self, links, headers) {
            Ok(body) => Self { kind: Kind::Rewritten(Box::new(body)), deadline: None },
            Err(unread) => unread,
        }
    }

    /// The same, broken off when this time has passed.
    pub(crate) fn until(mut self, deadline: Instant) -> Self {
        if !self.is_end_stream() {
            self.deadline = Some(Deadline::At(deadline));
        }
        self
    }
}

impl From<AnswerBody> for ProxyBody {
    fn from(body: AnswerBody) -> Self {
        Self { kind: Kind::Answer(body), deadline: None }
    }
}

impl Body for ProxyBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let mut frame = match &mut this.kind {
            Kind::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Answer(body) => body.poll_frame(cx),
            Kind::Rewritten(body) => body.poll_frame(cx),
        };
        if frame.is_pending()
            && let Some(deadline) = &mut this.deadline
            && deadline.poll(cx).is_ready()
        {
            this.kind = Kind::Full(None);
            return Poll::Ready(Some(Err(
                "the deadline passed before the backend's answer was complete".into()
            )));
        }
        if let Poll::Ready(Some(Ok(frame))) = &mut frame
            && let Some(trailers) = frame.trailers_mut()
        {
            headers::clean_trailers(trailers);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Full(bytes) => bytes.is_none(),
            Kind::Answer(body) => body.is_end_stream(),
            Kind::Rewritten(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Rewritten(_) => SizeHint::default(),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Answer(body) => body.size_hint(),
        }
    }
}
