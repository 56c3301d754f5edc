//! Body of a watch to which faults can apply while it is open: cut off, ended as expired, or paused.
//!
//! A fault that is set later also applies to open watches: each change of the faults is checked.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http_body::Frame;
use portico_machinery::Status;
use tokio::time::Sleep;
use tokio_stream::wrappers::WatchStream;

use super::events::EventParser;
use super::fault::Fault;
use super::fault_store::{Claim, FaultStore};
use super::requests::MatchedRequest;
use crate::body::{Body, BoxError};

/// Time for the events before a break to be sent.
const FLUSH_TIME: Duration = Duration::from_millis(10);

/// Result of a poll of the body.
type FramePoll = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

/// Body of a watch with faults.
pub struct WatchBody {
    inner: Body,
    request: MatchedRequest,
    reads_can_be_stale: bool,
    faults: Arc<FaultStore>,
    changes: Pin<Box<dyn Stream<Item = ()> + Send + Sync>>,
    events: EventParser,
    state: FaultState,
}

enum FaultState {
    /// No fault applies.
    Unaffected,
    /// A fault will end the watch.
    Ending(PendingEnd),
    /// The watch is paused.
    Paused(Claim),
    /// Breaks when earlier events have been sent: a reset of a stream discards data that is still queued.
    Breaking(Pin<Box<Sleep>>),
    /// The watch has ended.
    Ended,
}

/// A fault that ends the watch, and the time of the end.
struct PendingEnd {
    claim: Claim,
    /// Number of events that are left before the end; `None` if only time counts.
    events_left: Option<u64>,
    /// Timer of the end.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl WatchBody {
    /// Wraps the body of a watch of this media type. If not `reads_can_be_stale`, the watch is never paused.
    pub fn new(
        inner: Body,
        media_type: &str,
        request: MatchedRequest,
        reads_can_be_stale: bool,
        faults: Arc<FaultStore>,
    ) -> Self {
        let changes = Box::pin(WatchStream::from_changes(faults.changes()).map(|_| ()));
        let (events, state) = (EventParser::new(media_type), FaultState::Unaffected);
        let mut body = Self { inner, request, reads_can_be_stale, faults, changes, events, state };
        body.update_fault();
        body
    }

    /// Claims a fault if the body has none, or if its fault was removed.
    fn update_fault(&mut self) {
        let needs_fault = match &self.state {
            FaultState::Ending(PendingEnd { claim, .. }) | FaultState::Paused(claim) => {
                !self.faults.is_set(claim)
            }
            FaultState::Unaffected => true,
            FaultState::Breaking(_) | FaultState::Ended => false,
        };
        if needs_fault {
            let new_claim = self.faults.claim(&self.request, |fault| match fault {
                Fault::StaleReads { .. } => self.reads_can_be_stale,
                other => other.applies_to_open_watches(),
            });
            self.state = new_claim.map_or(FaultState::Unaffected, FaultState::from_claim);
        }
    }

    fn poll_ending(&mut self, cx: &mut Context<'_>) -> Option<FramePoll> {
        let FaultState::Ending(ending) = &mut self.state else { return None };
        let is_pending = match &mut ending.sleep {
            Some(sleep) => sleep.as_mut().poll(cx).is_pending(),
            None => ending.events_left.is_some(),
        };
        if ending.events_left != Some(0) && is_pending {
            return None;
        }
        let event = match ending.claim.fault() {
            // A client could not decode it in the middle of another event.
            Fault::ExpireWatch { .. } if !self.events.is_between() => return None,
            Fault::ExpireWatch { .. } => {
                let expired = Status::expired("The resourceVersion for the provided watch is too old.");
                Some(Ok(Frame::data(self.events.error(&expired).into())))
            }
            Fault::CutWatch { clean: true, .. } => None,
            _ => {
                ending.claim.mark_applied();
                self.state = FaultState::Breaking(Box::pin(tokio::time::sleep(FLUSH_TIME)));
                return None;
            }
        };
        ending.claim.mark_applied();
        self.state = FaultState::Ended;
        Some(Poll::Ready(event))
    }

    /// Truncates the bytes at the end of the watch.
    fn truncate_at_end(&mut self, mut bytes: Bytes) -> Bytes {
        let mut at = 0;
        while let Some(end) = self.events.next_end(&bytes[at..]) {
            at += end;
            if let FaultState::Ending(PendingEnd { events_left: Some(left), .. }) = &mut self.state {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    bytes.truncate(at);
                    break;
                }
            }
        }
        bytes
    }
}

impl FaultState {
    fn from_claim(mut claim: Claim) -> Self {
        let (events, milliseconds) = match claim.fault() {
            Fault::CutWatch { after_events, after_milliseconds, .. }
            | Fault::ExpireWatch { after_events, after_milliseconds } => (*after_events, *after_milliseconds),
            _ => {
                claim.mark_applied();
                return Self::Paused(claim);
            }
        };
        let sleep = milliseconds.map(|ms| Box::pin(tokio::time::sleep(Duration::from_millis(ms))));
        Self::Ending(PendingEnd { claim, events_left: events, sleep })
    }
}

impl http_body::Body for WatchBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> FramePoll {
        let this = self.get_mut();
        while let Poll::Ready(Some(())) = this.changes.as_mut().poll_next(cx) {
            this.update_fault();
        }
        if let Some(end) = this.poll_ending(cx) {
            return end;
        }
        match &mut this.state {
            FaultState::Paused(_) => return Poll::Pending,
            FaultState::Breaking(sleep) => {
                ready!(sleep.as_mut().poll(cx));
                this.state = FaultState::Ended;
                return Poll::Ready(Some(Err("a test fault cut the watch".into())));
            }
            FaultState::Ended => return Poll::Ready(None),
            FaultState::Unaffected | FaultState::Ending(_) => {}
        }
        Pin::new(&mut this.inner).poll_frame(cx).map_ok(|frame| match frame.into_data() {
            Ok(bytes) => Frame::data(this.truncate_at_end(bytes)),
            Err(trailers) => trailers,
        })
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use portico_machinery::RequestInfo;
    use tokio::sync::mpsc;
    use tokio_stream::wrappers::ReceiverStream;

    use super::*;

    const JSON: &str = "application/json;stream=watch";

    /// Sender of the events of a watch.
    type Sender = mpsc::Sender<Result<Frame<Bytes>, BoxError>>;

    /// Creates the body of a watch, the sender of its events, and the faults.
    fn watch() -> (WatchBody, Sender, Arc<FaultStore>) {
        let (sender, receiver) = mpsc::channel(8);
        let inner = Body::streamed(http_body_util::StreamBody::new(ReceiverStream::new(receiver)));
        let info = RequestInfo::parse("GET", "/api/v1/pods", "watch=true").unwrap();
        let faults = Arc::new(FaultStore::default());
        let request = MatchedRequest { info: info.into(), ..MatchedRequest::default() };
        (WatchBody::new(inner, JSON, request, true, Arc::clone(&faults)), sender, faults)
    }

    fn set(faults: &FaultStore, fault: &str) {
        faults.set(serde_json::from_str(&format!(r#"{{"times": 1, "fault": {fault}}}"#)).unwrap()).unwrap();
    }

    async fn send(sender: &Sender, text: &'static str) {
        sender.send(Ok(Frame::data(Bytes::from_static(text.as_bytes())))).await.unwrap();
    }

    async fn text(body: &mut WatchBody) -> Option<Result<String, String>> {
        let frame = body.frame().await?;
        let frame = frame.map(|frame| String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap());
        Some(frame.map_err(|error| error.to_string()))
    }

    #[tokio::test]
    async fn an_open_watch_is_cut_after_its_number_of_events_even_within_a_frame() {
        let (mut body, sender, faults) = watch();
        send(&sender, "1\n").await;
        assert_eq!(text(&mut body).await, Some(Ok("1\n".into())));
        set(&faults, r#"{"cutWatch": {"afterEvents": 2}}"#);
        send(&sender, "2\n3\n4\n").await;
        assert_eq!(text(&mut body).await, Some(Ok("2\n3\n".into())));
        assert_eq!(text(&mut body).await, Some(Err("a test fault cut the watch".into())));
        assert_eq!(text(&mut body).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_expires_sends_an_error_between_two_events() {
        let (mut body, sender, faults) = watch();
        set(&faults, r#"{"expireWatch": {"afterMilliseconds": 50}}"#);
        send(&sender, "half").await;
        assert_eq!(text(&mut body).await, Some(Ok("half".into())));
        tokio::time::advance(Duration::from_millis(60)).await;
        send(&sender, " an event\n").await;
        assert_eq!(text(&mut body).await, Some(Ok(" an event\n".into())));
        let error = text(&mut body).await.unwrap().unwrap();
        assert!(
            error.starts_with(r#"{"type":"ERROR","object":{"kind":"Status""#)
                && error.contains(r#""code":410"#)
        );
        assert_eq!(text(&mut body).await, None, "{error}");
    }

    #[tokio::test]
    async fn a_watch_pauses_until_the_fault_is_removed_and_loses_no_event() {
        let (mut body, sender, faults) = watch();
        set(&faults, r#"{"staleReads": {"resourceVersion": "1"}}"#);
        send(&sender, "1\n").await;
        let (read, ()) = tokio::join!(text(&mut body), async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            assert_eq!(faults.list().len(), 1);
            send(&sender, "2\n").await;
            faults.clear();
        });
        assert_eq!(read, Some(Ok("1\n".into())));
        assert_eq!(text(&mut body).await, Some(Ok("2\n".into())));
    }

    #[tokio::test]
    async fn a_clean_end_is_no_error() {
        let (mut body, _sender, faults) = watch();
        set(&faults, r#"{"cutWatch": {"clean": true}}"#);
        assert_eq!(text(&mut body).await, None);
    }
}
