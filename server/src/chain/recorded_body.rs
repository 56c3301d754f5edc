//! Response body whose end is sent after the last audit event is stored.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use portico_audit::Stage;
use portico_auditor::CompletionGuard;
use tonic::Code;
use tonic::body::Body;

use super::recording::note_refusal;

type StoreFuture = Pin<Box<dyn Future<Output = bool> + Send>>;

/// Response body whose end is sent after the last audit event is stored.
pub(super) struct RecordedBody {
    body: Body,
    completion_guard: CompletionGuard,
    /// Last event that is being stored, and the frame to send after it.
    storing: Option<(StoreFuture, Option<Frame<Bytes>>)>,
}

impl RecordedBody {
    pub(super) fn new(body: Body, completion_guard: CompletionGuard) -> Self {
        Self { body, completion_guard, storing: None }
    }

    /// Sends the last event, unless it was sent; `last` follows after it.
    fn end(&mut self, last: Option<Frame<Bytes>>) {
        let audited_request = self.completion_guard.disarm();
        let status = last.as_ref().and_then(Frame::trailers_ref).and_then(tonic::Status::from_header_map);
        if let (Some(audited_request), Some(status)) = (&audited_request, status)
            && status.code() != Code::Ok
        {
            note_refusal(audited_request, &status);
        }
        let storing = Box::pin(async move {
            match audited_request {
                Some(audited_request) => audited_request.process(Stage::ResponseComplete).await,
                None => true,
            }
        });
        self.storing = Some((storing, last));
    }
}

impl http_body::Body for RecordedBody {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        let this = self.get_mut();
        loop {
            if let Some((storing, last)) = &mut this.storing {
                ready!(storing.as_mut().poll(cx));
                let last = last.take();
                this.storing = None;
                return Poll::Ready(last.map(Ok));
            }
            match ready!(http_body::Body::poll_frame(Pin::new(&mut this.body), cx)) {
                Some(Ok(frame)) if frame.is_trailers() => this.end(Some(frame)),
                Some(frame) => return Poll::Ready(Some(frame)),
                None => this.end(None),
            }
        }
    }

    /// Returns false, because the last event must be stored first.
    fn is_end_stream(&self) -> bool {
        false
    }

    fn size_hint(&self) -> SizeHint {
        http_body::Body::size_hint(&self.body)
    }
}
