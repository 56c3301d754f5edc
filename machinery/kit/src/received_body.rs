//! Body as hyper receives it, except that a stream reset is never reported as the end of the body.
//!
//! hyper ends a body without an error when its HTTP/2 stream is reset with `NO_ERROR`, which only asks the peer to stop sending
//! (RFC 9113, 8.1). A reader that collects such a body would take a part for the whole. Does not depend on the
//! content of the body.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use parking_lot::Mutex;

use crate::dial::http_reason;

/// Body of a request or response, in which a reset stream is an error.
#[derive(Debug)]
pub struct ReceivedBody {
    /// Body of hyper; `None` only while this is dropped.
    body: Option<Incoming>,
    http2: bool,
    unread: Option<UnreadBody>,
}

/// Body of a request that was dropped before it was received completely.
///
/// Dropping it resets the stream as soon as the response is sent, and some clients then discard the whole response (curl
/// 7.88). Servers therefore read the rest for a short time first.
#[derive(Clone, Debug, Default)]
pub struct UnreadBody(Arc<Mutex<Option<Incoming>>>);

/// Reason why a body is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The peer reset the stream without an error.
    #[error("the HTTP/2 stream was reset")]
    Reset,
    /// The connection, the stream or the framing failed.
    #[error("{}", http_reason(.0))]
    Http(#[from] hyper::Error),
}

impl ReceivedBody {
    /// Wraps a body of a message of this HTTP version.
    #[must_use]
    pub fn new(body: Incoming, version: Version) -> Self {
        Self { body: Some(body), http2: version == Version::HTTP_2, unread: None }
    }

    /// Wraps the body of a request, and returns a handle for the rest of the body if it is dropped early. `None` for HTTP/1,
    /// which has no streams to reset, and for empty bodies.
    pub fn wrap_request(request: Request<Incoming>) -> (Request<Self>, Option<UnreadBody>) {
        let version = request.version();
        let comes = version == Version::HTTP_2 && !request.body().is_end_stream();
        let unread = comes.then(UnreadBody::default);
        let request = request.map(|body| {
            let mut received = Self::new(body, version);
            received.unread.clone_from(&unread);
            received
        });
        (request, unread)
    }

    /// Wraps the body of a response.
    pub fn wrap_response(response: Response<Incoming>) -> Response<Self> {
        let version = response.version();
        response.map(|body| Self::new(body, version))
    }
}

impl Body for ReceivedBody {
    type Data = Bytes;
    type Error = ReceiveError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ReceiveError>>> {
        let this = self.get_mut();
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        Poll::Ready(match ready!(Pin::new(&mut *body).poll_frame(cx)) {
            None if this.http2 && !body.is_end_stream() => Some(Err(ReceiveError::Reset)),
            polled => polled.map(|frame| frame.map_err(ReceiveError::Http)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl Drop for ReceivedBody {
    fn drop(&mut self) {
        if let Some(unread) = self.unread.take().filter(|_| !self.is_end_stream()) {
            *unread.0.lock() = self.body.take();
        }
    }
}

impl UnreadBody {
    /// Reads and discards the rest of the body, until it ends or a limit of bytes or time is reached.
    pub async fn drain(self, mut max_bytes: usize, max_duration: Duration) {
        let Some(mut body) = self.0.lock().take() else { return };
        let read = async {
            while let Some(Ok(frame)) = body.frame().await {
                let length = frame.data_ref().map_or(0, Bytes::len);
                let Some(left) = max_bytes.checked_sub(length) else { return };
                max_bytes = left;
            }
        };
        // The response is sent even if the client is still sending.
        let _in_time = tokio::time::timeout(max_duration, read).await;
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Empty};
    use hyper::client::conn::http2;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio::sync::oneshot;

    use super::*;
    use crate::tasks::TaskSet;

    /// Reads a response body on the client side; `end` ends the stream after the first frame was read.
    async fn read(
        end: impl FnOnce(h2::SendStream<Bytes>) + Send + 'static,
    ) -> Result<Option<Bytes>, ReceiveError> {
        let ((ours, theirs), (go, going), tasks) =
            (tokio::io::duplex(4096), oneshot::channel(), TaskSet::new());
        tasks.spawn_until_cancelled("server", async move {
            let mut server = h2::server::handshake(theirs).await.unwrap();
            let (_, mut respond) = server.accept().await.unwrap().unwrap();
            let mut body = respond.send_response(Response::new(()), false).unwrap();
            body.send_data("some".into(), false).unwrap();
            tokio::select! {
                next = server.accept() => panic!("{next:?}"),
                read = going => read.unwrap(),
            }
            end(body);
            while server.accept().await.is_some() {}
        });
        let (mut sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(ours)).await.unwrap();
        tasks.spawn_until_cancelled("client", async move { connection.await.unwrap() });
        let request = Request::get("https://a/").body(Empty::<Bytes>::new()).unwrap();
        let mut body = ReceivedBody::wrap_response(sender.send_request(request).await.unwrap()).into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "some");
        go.send(()).unwrap();
        let rest = body.frame().await.transpose().map(|rest| rest.and_then(|frame| frame.into_data().ok()));
        tasks.cancel();
        rest
    }

    #[tokio::test]
    async fn a_reset_stream_is_not_a_complete_body() {
        let rest = read(|mut body| body.send_data("more".into(), true).unwrap()).await;
        assert_eq!(rest.unwrap().unwrap(), "more");
        let rest = read(|mut body| body.send_data("".into(), true).unwrap()).await;
        assert!(rest.unwrap().is_none_or(|data| data.is_empty()));
        for code in [h2::Reason::NO_ERROR, h2::Reason::CANCEL, h2::Reason::INTERNAL_ERROR] {
            let rest = read(move |mut body| body.send_reset(code)).await;
            assert!(rest.is_err(), "{code:?}: {rest:?}");
        }
    }
}
