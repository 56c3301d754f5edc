//! The body type of the facade, for requests and for responses.
//!
//! A complete body is one variant and costs nothing to poll; all other bodies are streamed. Does not depend on the meaning of
//! the bytes.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;
use portico_kit::received_body::ReceivedBody;
use portico_proxy::{ProxyBody, RequestBody};

use crate::connection::ActiveRequestGuard;
use crate::response_completion::ResponseCompletion;
use crate::upload_pace::UploadPace;

/// Error that ends a body early. hyper then closes the connection (HTTP/1) or resets the stream.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The lock is never contended, because the body has one owner; it makes the type `Sync`, so that futures that hold
/// it are `Send`.
type StreamedBody = Mutex<Pin<Box<dyn http_body::Body<Data = Bytes, Error = BoxError> + Send>>>;

/// A body, and the work to do when it ends.
pub struct Body {
    kind: BodyKind,
    completion: Option<Box<ResponseCompletion>>,
    /// Limit on slow uploads; set on request bodies only.
    upload_pace: Option<Box<UploadPace>>,
}

enum BodyKind {
    Full(Option<Bytes>),
    Received(ReceivedBody),
    /// Body of a proxied response, the most frequent kind, streamed without a box.
    Proxied(Mutex<ProxyBody>),
    Streamed(StreamedBody),
}

impl Body {
    /// Returns a body without bytes.
    #[must_use]
    pub fn empty() -> Self {
        Self { kind: BodyKind::Full(None), completion: None, upload_pace: None }
    }

    /// Returns a body with all of its bytes.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self {
            kind: BodyKind::Full((!bytes.is_empty()).then_some(bytes)),
            completion: None,
            upload_pace: None,
        }
    }

    /// Returns a body that streams bytes.
    pub fn streamed<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let body = http_body_util::BodyExt::map_err(body, Into::into);
        Self { kind: BodyKind::Streamed(Mutex::new(Box::pin(body))), completion: None, upload_pace: None }
    }

    /// Attaches `completion`, which is dropped when the body ends for any reason.
    #[must_use]
    pub(crate) fn with_completion(mut self, completion: Box<ResponseCompletion>) -> Self {
        self.completion = Some(completion);
        self
    }

    /// Keeps the connection busy until the body is sent. A body without a completion is complete and counts as sent.
    pub fn keep_busy_until_sent(&mut self, busy: ActiveRequestGuard) {
        if let Some(completion) = &mut self.completion {
            completion.set_busy(busy);
        }
    }

    /// Drops the bytes and keeps the completion.
    pub fn clear(&mut self) {
        self.kind = BodyKind::Full(None);
    }

    /// Ends the body with an error if the client pauses for longer than `pause`.
    pub fn limit_pause(&mut self, pause: Duration) {
        if !http_body::Body::is_end_stream(self) {
            self.upload_pace = Some(Box::new(UploadPace::new(pause)));
        }
    }

    /// Returns the bytes of a complete body.
    #[cfg(test)]
    pub fn as_full(&self) -> Option<&[u8]> {
        match &self.kind {
            BodyKind::Full(bytes) => Some(bytes.as_deref().unwrap_or_default()),
            _ => None,
        }
    }

    /// Converts the body to the proxy's type.
    #[must_use]
    pub fn into_proxy(self) -> RequestBody {
        match self.kind {
            BodyKind::Received(body) if self.upload_pace.is_none() => RequestBody::from(body),
            kind => RequestBody::new(Self { kind, ..self }),
        }
    }

    /// True if all bytes are in memory and the length is known.
    pub fn is_full(&self) -> bool {
        matches!(self.kind, BodyKind::Full(_))
    }

    fn remaining(&self) -> usize {
        self.completion.as_ref().map_or(0, |completion| completion.rest_len())
    }

    fn poll_kind(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.kind {
            BodyKind::Full(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            BodyKind::Received(body) => {
                let polled = http_body::Body::poll_frame(Pin::new(body), cx).map_err(Into::into);
                match (&mut self.upload_pace, polled) {
                    (Some(pace), Poll::Pending) => pace.poll_wait(cx).map(|slow| Some(Err(slow.into()))),
                    (Some(pace), Poll::Ready(Some(Ok(frame)))) => {
                        pace.record(frame.data_ref().map_or(0, Bytes::len));
                        Poll::Ready(Some(Ok(frame)))
                    }
                    (_, polled) => polled,
                }
            }
            BodyKind::Proxied(body) => {
                http_body::Body::poll_frame(Pin::new(body.get_mut()), cx).map_err(Into::into)
            }
            BodyKind::Streamed(body) => body.get_mut().as_mut().poll_frame(cx),
        }
    }
}

impl From<ReceivedBody> for Body {
    fn from(body: ReceivedBody) -> Self {
        Self { kind: BodyKind::Received(body), completion: None, upload_pace: None }
    }
}

impl From<ProxyBody> for Body {
    fn from(body: ProxyBody) -> Self {
        Self { kind: BodyKind::Proxied(Mutex::new(body)), completion: None, upload_pace: None }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match &self.kind {
            BodyKind::Full(bytes) => {
                return write!(f, "Body({} bytes)", bytes.as_ref().map_or(0, Bytes::len));
            }
            BodyKind::Received(_) => "received",
            BodyKind::Proxied(_) => "proxied",
            BodyKind::Streamed(_) => "streamed",
        };
        write!(f, "Body({kind})")
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        if let Some(rest) = this.completion.as_mut().and_then(|completion| completion.take_rest()) {
            let frame = this.completion.as_mut().map(|completion| completion.next_part(Frame::data(rest)));
            return Poll::Ready(frame.map(Ok));
        }
        let polled = this.poll_kind(cx);
        let Some(completion) = &mut this.completion else { return polled };
        match polled {
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(Ok(completion.next_part(frame)))),
            Poll::Ready(Some(Err(error))) => {
                // The body of a backend's response ends at the same deadline.
                if !completion.poll_expired(cx) {
                    completion.record_failure();
                }
                Poll::Ready(Some(Err(error)))
            }
            Poll::Ready(None) => {
                this.completion = None;
                Poll::Ready(None)
            }
            Poll::Pending if completion.poll_expired(cx) => Poll::Ready(Some(Err(
                "the deadline of the request passed before the response was complete".into(),
            ))),
            Poll::Pending => {
                completion.wait_for_source();
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        if self.remaining() > 0 {
            return false;
        }
        match &self.kind {
            BodyKind::Full(bytes) => bytes.is_none(),
            BodyKind::Received(body) => body.is_end_stream(),
            BodyKind::Proxied(body) => body.lock().is_end_stream(),
            BodyKind::Streamed(body) => body.lock().is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let hint = match &self.kind {
            BodyKind::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            BodyKind::Received(body) => body.size_hint(),
            BodyKind::Proxied(body) => body.lock().size_hint(),
            BodyKind::Streamed(body) => body.lock().size_hint(),
        };
        match self.remaining() as u64 {
            0 => hint,
            rest => {
                let mut total = SizeHint::new();
                total.set_lower(hint.lower().saturating_add(rest));
                if let Some(upper) = hint.upper() {
                    total.set_upper(upper.saturating_add(rest));
                }
                total
            }
        }
    }
}
