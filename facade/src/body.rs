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
use portico_kit::received::Received;
use portico_proxy::{ProxyBody, RequestBody};

use crate::connection::ActiveRequestGuard;
use crate::pace::Pace;
use crate::response_completion::ResponseCompletion;

/// Error that ends a body early. hyper then closes the connection (HTTP/1) or resets the stream.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The lock is never contended, because the body has one owner; it makes the type `Sync`, so that futures that hold
/// it are `Send`.
type Streamed = Mutex<Pin<Box<dyn http_body::Body<Data = Bytes, Error = BoxError> + Send>>>;

/// A body, and the work to do when it ends.
pub struct Body {
    kind: Kind,
    completion: Option<Box<ResponseCompletion>>,
    /// Limit on slow uploads; set on request bodies only.
    pace: Option<Box<Pace>>,
}

enum Kind {
    Whole(Option<Bytes>),
    Received(Received),
    /// Body of a proxied response, the most frequent kind, streamed without a box.
    Proxied(Mutex<ProxyBody>),
    Streamed(Streamed),
}

impl Body {
    /// Returns a body without bytes.
    #[must_use]
    pub fn empty() -> Self {
        Self { kind: Kind::Whole(None), completion: None, pace: None }
    }

    /// Returns a body with all of its bytes.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { kind: Kind::Whole((!bytes.is_empty()).then_some(bytes)), completion: None, pace: None }
    }

    /// Returns a body that streams bytes.
    pub fn streamed<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let body = http_body_util::BodyExt::map_err(body, Into::into);
        Self { kind: Kind::Streamed(Mutex::new(Box::pin(body))), completion: None, pace: None }
    }

    /// Attaches `completion`, which is dropped when the body ends for any reason.
    #[must_use]
    pub(crate) fn with_completion(mut self, completion: Box<ResponseCompletion>) -> Self {
        self.completion = Some(completion);
        self
    }

    /// Keeps the connection busy until the body is sent. A body without a completion is complete and counts as sent.
    pub fn while_sent(&mut self, busy: ActiveRequestGuard) {
        if let Some(completion) = &mut self.completion {
            completion.set_busy(busy);
        }
    }

    /// Drops the bytes and keeps the completion.
    pub fn clear(&mut self) {
        self.kind = Kind::Whole(None);
    }

    /// Ends the body with an error if the client pauses for longer than `pause`.
    pub fn pace(&mut self, pause: Duration) {
        if !http_body::Body::is_end_stream(self) {
            self.pace = Some(Box::new(Pace::new(pause)));
        }
    }

    /// Returns the bytes of a complete body.
    #[cfg(test)]
    pub fn as_whole(&self) -> Option<&[u8]> {
        match &self.kind {
            Kind::Whole(bytes) => Some(bytes.as_deref().unwrap_or_default()),
            _ => None,
        }
    }

    /// Converts the body to the proxy's type.
    #[must_use]
    pub fn into_proxy(self) -> RequestBody {
        match self.kind {
            Kind::Received(body) if self.pace.is_none() => RequestBody::from(body),
            kind => RequestBody::new(Self { kind, ..self }),
        }
    }

    /// True if all bytes are in memory and the length is known.
    pub fn is_whole(&self) -> bool {
        matches!(self.kind, Kind::Whole(_))
    }

    fn rest(&self) -> usize {
        self.completion.as_ref().map_or(0, |completion| completion.rest())
    }

    fn poll_kind(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.kind {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Kind::Received(body) => {
                let polled = http_body::Body::poll_frame(Pin::new(body), cx).map_err(Into::into);
                match (&mut self.pace, polled) {
                    (Some(pace), Poll::Pending) => pace.poll_wait(cx).map(|slow| Some(Err(slow.into()))),
                    (Some(pace), Poll::Ready(Some(Ok(frame)))) => {
                        pace.took(frame.data_ref().map_or(0, Bytes::len));
                        Poll::Ready(Some(Ok(frame)))
                    }
                    (_, polled) => polled,
                }
            }
            Kind::Proxied(body) => {
                http_body::Body::poll_frame(Pin::new(body.get_mut()), cx).map_err(Into::into)
            }
            Kind::Streamed(body) => body.get_mut().as_mut().poll_frame(cx),
        }
    }
}

impl From<Received> for Body {
    fn from(body: Received) -> Self {
        Self { kind: Kind::Received(body), completion: None, pace: None }
    }
}

impl From<ProxyBody> for Body {
    fn from(body: ProxyBody) -> Self {
        Self { kind: Kind::Proxied(Mutex::new(body)), completion: None, pace: None }
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
            Kind::Whole(bytes) => return write!(f, "Body({} bytes)", bytes.as_ref().map_or(0, Bytes::len)),
            Kind::Received(_) => "received",
            Kind::Proxied(_) => "proxied",
            Kind::Streamed(_) => "streamed",
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
            let frame = this.completion.as_mut().map(|completion| completion.send(Frame::data(rest)));
            return Poll::Ready(frame.map(Ok));
        }
        let polled = this.poll_kind(cx);
        let Some(completion) = &mut this.completion else { return polled };
        match polled {
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(Ok(completion.send(frame)))),
            Poll::Ready(Some(Err(error))) => {
                // The body of a backend's response ends at the same deadline.
                if !completion.expired(cx) {
                    completion.broke();
                }
                Poll::Ready(Some(Err(error)))
            }
            Poll::Ready(None) => {
                this.completion = None;
                Poll::Ready(None)
            }
            Poll::Pending if completion.expired(cx) => {
                Poll::Ready(Some(Err("the request's deadline passed while answering".into())))
            }
            Poll::Pending => {
                completion.wait_for_source();
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        if self.rest() > 0 {
            return false;
        }
        match &self.kind {
            Kind::Whole(bytes) => bytes.is_none(),
            Kind::Received(body) => body.is_end_stream(),
            Kind::Proxied(body) => body.lock().is_end_stream(),
            Kind::Streamed(body) => body.lock().is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let hint = match &self.kind {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Kind::Received(body) => body.size_hint(),
            Kind::Proxied(body) => body.lock().size_hint(),
            Kind::Streamed(body) => body.lock().size_hint(),
        };
        match self.rest() as u64 {
            0 => hint,
            rest => {
                let mut more = SizeHint::new();
                more.set_lower(hint.lower().saturating_add(rest));
                if let Some(upper) = hint.upper() {
                    more.set_upper(upper.saturating_add(rest));
                }
                more
            }
        }
    }
}
