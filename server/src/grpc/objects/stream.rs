//! Streams of lists and watches: each part of the registry's stream becomes a message, without collecting the parts.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use portico_auditor::ListCollector;
use portico_proto::objects::{DoResponse, ListResponse, WatchResponse, watch_response};
use portico_proto::rpc_status::to_rpc;
use portico_registry::{Body, ListStream, Watch, WatchFrame, WatchStream};

use crate::grpc::RpcResult;
use crate::queues::RunningCall;

/// Maximum bytes of a body in one message.
const PART_BYTES: usize = 1024 * 1024;

/// List in messages; the first one has the head of the answer.
pub(crate) struct ListMessages {
    head: Option<ListResponse>,
    /// Bytes to send before the next part of `rest`.
    next: Bytes,
    rest: Option<ListStream>,
    /// Audit record of the list; `None` if it is not recorded.
    audit_list: Option<ListCollector>,
}

impl ListMessages {
    pub(super) fn new(head: DoResponse, body: Body, audit_list: Option<ListCollector>) -> RpcResult<Self> {
        let (next, rest) = match body {
            Body::Bytes(bytes) => (bytes, None),
            Body::List(parts) => (Bytes::new(), Some(parts)),
            Body::Watch(_) => return Err(tonic::Status::invalid_argument("use Watch for a watch")),
        };
        Ok(Self { head: Some(head_message(head)), next, rest, audit_list })
    }

    /// Returns the next bytes of the body; `None` at its end.
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<RpcResult<Option<Bytes>>> {
        while self.next.is_empty() {
            let Some(rest) = &mut self.rest else { return Poll::Ready(Ok(None)) };
            match ready!(rest.poll_next_unpin(cx)) {
                Some(part) => self.next = part.map_err(|status| to_rpc(&status))?,
                None => self.rest = None,
            }
        }
        let length = self.next.len().min(PART_BYTES);
        Poll::Ready(Ok(Some(self.next.split_to(length))))
    }
}

/// Returns the first message of a list, with the head of its answer.
fn head_message(head: DoResponse) -> ListResponse {
    ListResponse {
        code: head.code,
        body: head.body,
        media_type: head.media_type,
        warnings: head.warnings,
        revision: head.revision,
        retry_after_seconds: head.retry_after_seconds,
        pretty: head.pretty,
        audit: head.audit,
        audit_annotations: head.audit_annotations,
        configures: head.configures,
        webhook_microseconds: head.webhook_microseconds,
        unrouted: head.unrouted,
    }
}

impl Stream for ListMessages {
    type Item = RpcResult<ListResponse>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let part = match ready!(self.poll_part(cx)) {
            Ok(part) => part,
            Err(status) => {
                // An incomplete list is not recorded as complete.
                (self.audit_list, self.rest) = (None, None);
                return Poll::Ready(Some(Err(status)));
            }
        };
        match (&mut self.audit_list, &part) {
            (Some(collector), Some(part)) => collector.push(part),
            (Some(collector), None) => {
                collector.finish();
                self.audit_list = None;
            }
            (None, _) => {}
        }
        let head = self.head.take();
        Poll::Ready(match (head, part) {
            (None, None) => None,
            (head, part) => {
                Some(Ok(ListResponse { body: part.unwrap_or_default(), ..head.unwrap_or_default() }))
            }
        })
    }
}

/// Watch in messages.
pub(crate) struct WatchMessages {
    first: Option<WatchResponse>,
    frames: Option<WatchStream>,
    /// Number of the following frames that contain the initial objects.
    initial: usize,
    /// Registration of the watch, which is included in cost estimates of writes.
    _running: RunningCall,
}

impl WatchMessages {
    pub(super) fn with_frames(first: WatchResponse, watch: Watch, running: RunningCall) -> Self {
        Self { first: Some(first), frames: Some(watch.frames), initial: watch.initial, _running: running }
    }

    pub(super) fn from_first(first: WatchResponse) -> Self {
        Self { first: Some(first), frames: None, initial: 0, _running: RunningCall::default() }
    }
}

impl Stream for WatchMessages {
    type Item = RpcResult<WatchResponse>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        let Some(frames) = &mut this.frames else { return Poll::Ready(None) };
        let frame = ready!(frames.poll_next_unpin(cx));
        Poll::Ready(frame.map(|WatchFrame { frame, has_more }| {
            let step = Some(watch_response::Step::Frames(frame.line()));
            // Initial frames are sorted by key, so a client cannot resume after one of them.
            let is_initial = this.initial > 0;
            this.initial = this.initial.saturating_sub(1);
            let revision = if is_initial { 0 } else { frame.revision - i64::from(has_more) };
            Ok(WatchResponse { step, revision, more: has_more })
        }))
    }
}
