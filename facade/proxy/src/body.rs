//! Bodies of responses, which stream through the proxy: chunks are forwarded as they arrive and are not collected.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::headers;
use crate::links::{LinkRewriter, RewrittenBody};
use crate::request_body::BoxError;
use crate::transport::ResponseBody;

/// Body of a response. Dropping it before its end closes the connection to the backend: a client that aborts
/// cancels the request at the backend.
#[derive(Debug)]
pub struct ProxyBody {
    kind: Kind,
    deadline: Option<Deadline>,
}

/// Deadline of a body. The timer is created when the body is first pending.
#[derive(Debug)]
enum Deadline {
    At(Instant),
    Running(Pin<Box<Sleep>>),
}

#[derive(Debug)]
enum Kind {
    Full(Option<Bytes>),
    Backend(ResponseBody),
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
    /// Creates a body of these bytes.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { kind: Kind::Full(Some(bytes).filter(|bytes| !bytes.is_empty())), deadline: None }
    }

    /// Creates an empty body.
    pub fn empty() -> Self {
        Self { kind: Kind::Full(None), deadline: None }
    }

    /// Rewrites the links of the page; its length is then unknown. A page in an unsupported content encoding is not changed.
    pub(crate) fn with_links(self, links: LinkRewriter, headers: &mut HeaderMap) -> Self {
        if self.is_end_stream() {
            // The response to a HEAD request, or an empty page.
            return self;
        }
        match RewrittenBody::wrap(self, links, headers) {
            Ok(body) => Self { kind: Kind::Rewritten(Box::new(body)), deadline: None },
            Err(unread) => unread,
        }
    }

    /// Fails the body when this deadline has passed.
    pub(crate) fn with_deadline(mut self, deadline: Instant) -> Self {
        if !self.is_end_stream() {
            self.deadline = Some(Deadline::At(deadline));
        }
        self
    }
}

impl From<ResponseBody> for ProxyBody {
    fn from(body: ResponseBody) -> Self {
        Self { kind: Kind::Backend(body), deadline: None }
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
            Kind::Backend(body) => body.poll_frame(cx),
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
            Kind::Backend(body) => body.is_end_stream(),
            Kind::Rewritten(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Rewritten(_) => SizeHint::default(),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Backend(body) => body.size_hint(),
        }
    }
}
