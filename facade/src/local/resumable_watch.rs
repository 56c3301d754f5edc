//! A watch that survives the loss of its control service: another one resumes it after the last revision that was sent, and the
//! client does not notice. A watch that is sending its initial events ends, because they cannot be resumed in the middle.

use std::sync::Arc;
use std::time::Instant;

use futures::{Stream, stream};
use portico_proto::client::PartialRevision;
use portico_proto::objects::watch_response::Step;
use portico_proto::objects::{Call, WatchRequest, WatchResponse, WatchStarted};
use tonic::{Status, Streaming};

use super::control_call::{ControlCall, client};
use super::resume_query::watch_from;
use crate::control_services::{ControlServices, Member, RetryCondition, is_service_lost};

/// First step of a watch, and the stream of the others.
pub(super) type StartedWatch = (Option<Step>, Streaming<WatchResponse>);

/// Requests a watch from one control service.
pub(super) async fn begin(
    member: Arc<Member>,
    request: tonic::Request<WatchRequest>,
) -> Result<StartedWatch, Status> {
    let mut steps = client(&member.transport.streams).watch(request).await?.into_inner();
    Ok((steps.message().await?.and_then(|first| first.step), steps))
}

/// A watch that has started.
pub(super) struct ResumableWatch {
    pub(super) services: ControlServices,
    /// Control service that sends the steps.
    pub(super) member: Arc<Member>,
    pub(super) control_call: ControlCall,
    pub(super) steps: Streaming<WatchResponse>,
    started_at: Instant,
    position: WatchPosition,
    /// Events of a revision that was received in part.
    partial: PartialRevision,
}

/// Position of a watch in its stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchPosition {
    /// No event was sent: the watch can be repeated unchanged.
    Begin { initial: u64, from: i64 },
    /// Initial events up to this revision are being sent, of which `remaining` are missing.
    Initial { remaining: u64, from: i64 },
    /// All events up to this revision were sent.
    At(i64),
    /// A control service of an earlier release does not report its revision.
    Unknown,
}

impl WatchPosition {
    fn from_started(started: &WatchStarted) -> Self {
        match (started.initial_frames, started.revision) {
            (0, revision) if revision > 0 => Self::At(revision),
            (initial, from) => Self::Begin { initial, from },
        }
    }

    /// Revision up to which all events were sent, if known.
    fn revision(self) -> Option<i64> {
        match self {
            Self::At(revision) => Some(revision),
            _ => None,
        }
    }

    /// Returns the position after a frame with this revision.
    fn after(self, revision: i64) -> Self {
        match self {
            Self::Begin { initial: remaining, from } | Self::Initial { remaining, from } if remaining > 1 => {
                Self::Initial { remaining: remaining - 1, from }
            }
            Self::Begin { initial: 1, from } | Self::Initial { from, .. } if from > 0 => Self::At(from),
            _ if revision > 0 => Self::At(revision),
            _ => Self::Unknown,
        }
    }
}

impl ResumableWatch {
    /// Continues after the first step.
    pub(super) fn new(
        services: ControlServices,
        member: Arc<Member>,
        control_call: ControlCall,
        started: &WatchStarted,
        steps: Streaming<WatchResponse>,
    ) -> Self {
        let (started_at, position, partial) =
            (Instant::now(), WatchPosition::from_started(started), PartialRevision::default());
        Self { services, member, control_call, steps, started_at, position, partial }
    }

    /// Stream of the remaining steps, until the watch ends.
    pub(super) fn steps(self) -> impl Stream<Item = Result<WatchResponse, Status>> + Send {
        stream::unfold(Some(self), |watch| async move {
            let mut watch = watch?;
            match watch.next().await? {
                Ok(step) => Some((Ok(step), Some(watch))),
                Err(failure) => Some((Err(failure), None)),
            }
        })
    }

    async fn next(&mut self) -> Option<Result<WatchResponse, Status>> {
        loop {
            let step = tokio::select! {
                biased;
                step = self.steps.message() => step,
                () = self.services.until_not_serving(&self.member) => Err(Status::unavailable("the control service was replaced")),
            };
            let failure = match step {
                Ok(Some(step)) if !self.partial.accept(&step) => continue,
                Ok(Some(step)) => {
                    self.position = self.position.after(step.revision);
                    self.services.record_shown(&self.member, step.revision);
                    return Some(Ok(step));
                }
                // A control service that stops ends its watches.
                Ok(None) if !self.services.is_serving(&self.member) => {
                    Status::unavailable("the control service has stopped")
                }
                Ok(None) => return None,
                Err(failure) if is_service_lost(&failure) => failure,
                Err(failure) => return Some(Err(failure)),
            };
            let (server, revision) = (self.member.name.as_str(), self.position.revision());
            tracing::debug!(server, error = %failure, revision, "resuming a watch on another control service");
            match self.resume().await {
                // The number of initial frames can have changed.
                Ok(Some(started)) => {
                    return Some(Ok(WatchResponse {
                        step: Some(Step::Started(started)),
                        ..Default::default()
                    }));
                }
                Ok(None) => return None,
                Err(failure) => return Some(Err(failure)),
            }
        }
    }

    /// Resumes with the control service in use; `None` if the watch cannot be resumed and ends.
    async fn resume(&mut self) -> Result<Option<WatchStarted>, Status> {
        let query = match self.position {
            WatchPosition::Begin { .. } => Some(self.control_call.call.query.clone()),
            WatchPosition::At(revision) => {
                watch_from(&self.control_call.call.query, revision, self.started_at.elapsed())
            }
            WatchPosition::Initial { .. } | WatchPosition::Unknown => None,
        };
        let Some(query) = query else { return Ok(None) };
        let call = Call { query, ..self.control_call.call.clone() };
        let control_call = &self.control_call;
        let attempt = |member: Arc<Member>| {
            begin(member.clone(), control_call.message(&member, WatchRequest { call: Some(call.clone()) }))
        };
        let (member, (first, steps)) = self.services.call(RetryCondition::Always, None, attempt).await?;
        let Some(Step::Started(started)) = first else { return Ok(None) };
        self.partial.resume();
        if matches!(self.position, WatchPosition::Begin { .. }) {
            self.position = WatchPosition::from_started(&started);
        }
        (self.member, self.steps) = (member, steps);
        Ok(Some(started))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(initial_frames: u64, revision: i64) -> WatchStarted {
        WatchStarted { initial_frames, revision, ..WatchStarted::default() }
    }

    #[test]
    fn a_watch_can_resume_after_its_initial_events_and_after_each_event() {
        let position = WatchPosition::from_started(&started(2, 9));
        assert_eq!(position, WatchPosition::Begin { initial: 2, from: 9 });
        let position = position.after(0);
        assert_eq!(
            position,
            WatchPosition::Initial { remaining: 1, from: 9 },
            "in the middle of the initial events"
        );
        let position = position.after(0);
        assert_eq!((position, position.after(12)), (WatchPosition::At(9), WatchPosition::At(12)));
        assert_eq!(WatchPosition::from_started(&started(1, 9)).after(0), WatchPosition::At(9));
        assert_eq!(WatchPosition::from_started(&started(0, 7)), WatchPosition::At(7));
    }

    #[test]
    fn a_watch_of_an_earlier_release_cannot_be_resumed() {
        assert_eq!(WatchPosition::from_started(&started(0, 0)).after(0), WatchPosition::Unknown);
        assert_eq!(WatchPosition::from_started(&started(1, 0)).after(0), WatchPosition::Unknown);
    }
}
