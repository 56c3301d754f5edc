//! One HTTP/1.1 connection to a backend, driven by the request that uses it.
//!
//! No task stands between a request and its connection: whoever awaits the answer, or reads its body, polls the
//! connection itself. That saves two wake-ups of other tasks per request. The end of an idle connection is noticed
//! by the sweeper, or by the next request, which then goes elsewhere.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use futures::task::AtomicWaker;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use portico_kit::dial::Connection;
use tokio::time::Instant;

use super::exchange::{SendError, http_error};
use super::registry::Permit;
use crate::body::{BoxError, RequestBody};

/// Headers that a backend's answer may have, in bytes. In number it is hyper's 100.
const MAX_HEADER_BYTES: usize = 1 << 20;

pub(crate) struct Http1 {
    sender: http1::SendRequest<RequestBody>,
    connection: http1::Connection<TokioIo<Connection>, RequestBody>,
    bell: Arc<Bell>,
    /// Rings the bell.
    waker: Waker,
    /// The client certificate's generation that it was opened under.
    pub(super) generation: u64,
    pub(super) idle_since: Instant,
}

/// The connection's waker. What happens inside our own polling need not wake the task that is running already, so
/// the bell is muted then: without that, each answer would poll its task once more for nothing.
#[derive(Default)]
struct Bell {
    task: AtomicWaker,
    muted: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.muted.load(Ordering::SeqCst) {
            self.task.wake();
        }
    }
}

impl Bell {
    /// Runs what may ring without need. A ring from elsewhere that falls into this moment is lost, so the connection
    /// must be polled afterwards.
    fn muted<T>(&self, run: impl FnOnce() -> T) -> T {
        self.muted.store(true, Ordering::SeqCst);
        let value = run();
        self.muted.store(false, Ordering::SeqCst);
        value
    }
}

/// Why no answer came.
pub(crate) enum Http1Error {
    /// Nothing of the request has left: it may be sent elsewhere.
    Unsent(Box<Request<RequestBody>>, SendError),
    /// Something has left, or may have.
    Broken(SendError),
}

/// What is left of a connection whose protocol was switched.
pub(crate) struct Switched {
    pub(crate) io: Connection,
    /// What the backend sent already in the new protocol.
    pub(crate) early: Bytes,
}

impl Http1 {
    pub(crate) async fn open(io: Connection, generation: u64) -> Result<Box<Self>, hyper::Error> {
        let (sender, connection) =
            http1::Builder::new().max_buf_size(MAX_HEADER_BYTES).handshake(TokioIo::new(io)).await?;
        let bell = Arc::<Bell>::default();
        let waker = Waker::from(bell.clone());
        Ok(Box::new(Self { sender, connection, bell, waker, generation, idle_since: Instant::now() }))
    }

    /// Whether it can take a request: the peer has not closed it and the last exchange is over.
    pub(super) fn is_usable(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        Pin::new(&mut self.connection).poll(&mut cx).is_pending() && self.sender.is_ready()
    }

    /// Lets the connection work, in the name of the task of `cx`.
    fn poll(&mut self, cx: &Context<'_>) -> Poll<hyper::Result<()>> {
        self.bell.task.register(cx.waker());
        Pin::new(&mut self.connection).poll(&mut Context::from_waker(&self.waker))
    }

    /// Sends a request and waits for the answer's head. Dropping the future cancels it, with the connection.
    pub(crate) async fn send(
        mut self: Box<Self>,
        request: Request<RequestBody>,
    ) -> Result<(Box<Self>, Response<Incoming>), Http1Error> {
        let sender = &mut self.sender;
        let answer = self.bell.muted(|| sender.try_send_request(request));
        // Only our own polling of the connection completes the answer, so it wakes nobody; and without the
        // cooperative budget, whose end would have to wake somebody.
        let mut answer = pin!(tokio::task::unconstrained(answer));
        let mut outcome = std::future::poll_fn(|cx| {
            let ended = self.poll(cx);
            match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending if ended.is_ready() => Poll::Ready(Poll::Pending),
                Poll::Pending => Poll::Pending,
                answer => Poll::Ready(answer),
            }
        })
        .await;
        if let Poll::Ready(Ok(response)) = outcome {
            return Ok((self, response));
        }
        // An idle connection that had ended gives the request back when it is dropped.
        drop(self);
        if outcome.is_pending() {
            outcome = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        let Poll::Ready(Err(mut error)) = outcome else {
            return Err(Http1Error::Broken(SendError::Http("the connection ended".to_owned())));
        };
        Err(match error.take_message() {
            Some(request) => Http1Error::Unsent(Box::new(request), http_error(&error.into_error())),
            None => Http1Error::Broken(http_error(&error.into_error())),
        })
    }

    /// After a 101: lets go of the connection.
    pub(crate) async fn switch(mut self: Box<Self>) -> Result<Switched, hyper::Error> {
        std::future::poll_fn(|cx| self.connection.poll_without_shutdown(cx)).await?;
        let parts = self.connection.into_parts();
        Ok(Switched { io: parts.io.into_inner(), early: parts.read_buf })
    }
}

/// An answer's body with the connection that it comes from.
pub(crate) struct Http1Body {
    incoming: Incoming,
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

impl Http1Body {
    /// A body over this connection; without a target, the connection is closed after it.
    pub(crate) fn new(
        incoming: Incoming,
        connection: Box<Http1>,
        permit: Permit,
        target: Option<usize>,
    ) -> Self {
        let mut body = Self { incoming, lease: Some(Lease { connection, permit, target }), failure: None };
        body.release_at_end();
        body
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        match self.poll_driven(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => {
                self.release();
                Poll::Ready(None)
            }
            Poll::Ready(Some(Ok(frame))) => {
                self.release_at_end();
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(failure))) => {
                // Told at the next poll: our listener throws away what it has not flushed when a body fails, and
                // the client should get what there was.
                self.lease = None;
                self.failure = Some(failure);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    /// The next frame; while there is none, the connection is driven.
    fn poll_driven(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut quiet = Context::from_waker(Waker::noop());
        let Self { incoming, lease: Some(Lease { connection, .. }), .. } = self else {
            return Pin::new(&mut self.incoming)
                .poll_frame(&mut quiet)
                .map(|frame| frame.map(|frame| frame.map_err(Into::into)));
        };
        let mut frame = connection.bell.muted(|| Pin::new(&mut *incoming).poll_frame(&mut quiet));
        if frame.is_pending() {
            // Whatever the connection reads while it is polled here is in the body's channel afterwards.
            let ended = connection.poll(cx);
            frame = Pin::new(incoming).poll_frame(&mut quiet);
            if frame.is_pending() && ended.is_ready() {
                return Poll::Ready(Some(Err("the backend's connection ended".into())));
            }
        }
        frame.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }

    fn release_at_end(&mut self) {
        if self.incoming.is_end_stream() {
            self.release();
        }
    }

    fn release(&mut self) {
        if let Some(Lease { mut connection, permit, target: Some(target) }) = self.lease.take()
            && (connection.sender.is_ready() || connection.is_usable())
        {
            permit.transport().put(target, connection);
        }
    }
}

impl std::fmt::Debug for Http1Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http1Body").field("leased", &self.lease.is_some()).finish_non_exhaustive()
    }
}
