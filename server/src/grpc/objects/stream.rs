//! Streams of lists and watches: what the registry yields, wrapped message by message, nothing gathered.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use portico_auditor::GatheredList;
use portico_proto::objects::{ListResponse, WatchResponse, watch_response};
use portico_registry::{Body, ListStream, Watch, WatchStream};

use crate::grpc::RpcResult;
use crate::queues::Running;

/// What is left of a list's body.
enum Rest {
    Whole(Option<Bytes>),
    Parts(ListStream),
}

/// A list in messages; the first carries the head.
pub(crate) struct ListParts {
    head: Option<ListResponse>,
    rest: Rest,
    /// Where the list is recorded.
    gathered: Option<GatheredList>,
}

impl ListParts {
    pub(super) fn new(head: ListResponse, body: Body, gathered: Option<GatheredList>) -> RpcResult<Self> {
        let rest = match body {
            Body::Bytes(bytes) => Rest::Whole(Some(bytes)),
            Body::List(parts) => Rest::Parts(parts),
            Body::Watch(_) => return Err(tonic::Status::invalid_argument("a watch is asked of Watch")),
        };
        Ok(Self { head: Some(head), rest, gathered })
    }
}

impl Stream for ListParts {
    type Item = RpcResult<ListResponse>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let part = match &mut self.rest {
            Rest::Whole(bytes) => bytes.take(),
            Rest::Parts(parts) => ready!(parts.poll_next_unpin(cx)),
        };
        match (&mut self.gathered, &part) {
            (Some(gathered), Some(part)) => gathered.add(part),
            (Some(gathered), None) => {
                gathered.end();
                self.gathered = None;
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

/// A watch in messages.
pub(crate) struct WatchSteps {
    first: Option<WatchResponse>,
    frames: Option<WatchStream>,
    /// How many of the next frames show what was there.
    initial: usize,
    /// Writes are estimated by it while it lasts.
    _running: Running,
}

impl WatchSteps {
    pub(super) fn frames(first: WatchResponse, watch: Watch, running: Running) -> Self {
        Self { first: Some(first), frames: Some(watch.frames), initial: watch.initial, _running: running }
    }

    pub(super) fn only(first: WatchResponse) -> Self {
        Self { first: Some(first), frames: None, initial: 0, _running: Running::default() }
    }
}

impl Stream for WatchSteps {
    type Item = RpcResult<WatchResponse>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        let Some(frames) = &mut this.frames else { return Poll::Ready(None) };
        let frame = ready!(frames.poll_next_unpin(cx));
        Poll::Ready(frame.map(|frame| {
            let step = Some(watch_response::Step::Frames(frame.line()));
            // Initial frames come in the order of their keys: nobody could go on behind one of them.
            let is_initial = this.initial > 0;
            this.initial = this.initial.saturating_sub(1);
            Ok(WatchResponse { step, revision: if is_initial { 0 } else { frame.revision } })
        }))
    }
}
