//! A watch that survives the loss of its control service: another one resumes it after the last revision that was sent, and the
//! client does not notice. A watch that is sending its initial events ends, because they cannot be resumed in the middle.

use std::sync::Arc;
use std::time::Instant;

use futures::{Stream, stream};
use portico_proto::client::PartialRevision;
use portico_proto::objects::watch_response::Step;
use portico_proto::objects::{Call, WatchRequest, WatchResponse, WatchStarted};
use tonic::{Status, Streaming};

use super::again::watch_from;
use super::asked::{Asked, client};
use crate::control_services::{ControlServices, Member, Repeat, was_lost};

/// First step of a watch, and the stream of the others.
pub(super) type Begun = (Option<Step>, Streaming<WatchResponse>);

/// Requests a watch from one control service.
pub(super) async fn begin(
    member: Arc<Member>,
    request: tonic::Request<WatchRequest>,
) -> Result<Begun, Status> {
    let mut steps = client(&member.transport.streams).watch(request).await?.into_inner();
    Ok((steps.message().await?.and_then(|first| first.step), steps))
}

/// A watch that has started.
pub(super) struct Resumed {
    pub(super) services: ControlServices,
    /// Control service that sends the steps.
    pub(super) member: Arc<Member>,
    pub(super) asked: Asked,
    pub(super) steps: Streaming<WatchResponse>,
    begin: Instant,
    place: Place,
    /// Events of a revision that was received in part.
    partial: PartialRevision,
}

/// Position of a watch in its stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// No event was sent: the watch can be repeated unchanged.
    Begin { initial: u64, from: i64 },
    /// Initial events up to this revision are being sent, of which `left` are missing.
    Initial { left: u64, from: i64 },
    /// All events up to this revision were sent.
    At(i64),
    /// A control service of an earlier release does not report its revision.
    Unknown,
}

impl Place {
    fn of(started: &WatchStarted) -> Self {
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
            Self::Begin { initial: left, from } | Self::Initial { left, from } if left > 1 => {
                Self::Initial { left: left - 1, from }
            }
            Self::Begin { initial: 1, from } | Self::Initial { from, .. } if from > 0 => Self::At(from),
            _ if revision > 0 => Self::At(revision),
            _ => Self::Unknown,
        }
    }
}

impl Resumed {
    /// Continues after the first step.
    pub(super) fn new(
        services: ControlServices,
        member: Arc<Member>,
        asked: Asked,
        started: &WatchStarted,
        steps: Streaming<WatchResponse>,
    ) -> Self {
        let (begin, place, partial) = (Instant::now(), Place::of(started), PartialRevision::default());
        Self { services, member, asked, steps, begin, place, partial }
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
                () = self.services.left(&self.member) => Err(Status::unavailable("the control service was replaced")),
            };
            let failure = match step {
                Ok(Some(step)) if !self.partial.take(&step) => continue,
                Ok(Some(step)) => {
                    self.place = self.place.after(step.revision);
                    self.services.has_shown(&self.member, step.revision);
                    return Some(Ok(step));
                }
                // A control service that stops ends its watches.
                Ok(None) if !self.services.serves(&self.member) => {
                    Status::unavailable("the control service has stopped")
                }
                Ok(None) => return None,
                Err(failure) if was_lost(&failure) => failure,
                Err(failure) => return Some(Err(failure)),
            };
            let (server, revision) = (self.member.name.as_str(), self.place.revision());
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

    /// Resumes with the control service in use; `None` if there is nothing to resume.
    async fn resume(&mut self) -> Result<Option<WatchStarted>, Status> {
        let query = match self.place {
            Place::Begin { .. } => Some(self.asked.call.query.clone()),
            Place::At(revision) => watch_from(&self.asked.call.query, revision, self.begin.elapsed()),
            Place::Initial { .. } | Place::Unknown => None,
        };
        let Some(query) = query else { return Ok(None) };
        let call = Call { query, ..self.asked.call.clone() };
        let asked = &self.asked;
        let again = |member: Arc<Member>| {
            begin(member.clone(), asked.message(&member, WatchRequest { call: Some(call.clone()) }))
        };
        let (member, (first, steps)) = self.services.call(Repeat::Always, None, again).await?;
        let Some(Step::Started(started)) = first else { return Ok(None) };
        self.partial.resume();
        if matches!(self.place, Place::Begin { .. }) {
            self.place = Place::of(&started);
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
    fn a_watch_can_go_on_behind_what_was_there_and_behind_each_event() {
        let place = Place::of(&started(2, 9));
        assert_eq!(place, Place::Begin { initial: 2, from: 9 });
        let place = place.after(0);
        assert_eq!(place, Place::Initial { left: 1, from: 9 }, "in the middle of what was there");
        let place = place.after(0);
        assert_eq!((place, place.after(12)), (Place::At(9), Place::At(12)));
        assert_eq!(Place::of(&started(1, 9)).after(0), Place::At(9));
        assert_eq!(Place::of(&started(0, 7)), Place::At(7));
    }

    #[test]
    fn a_watch_of_an_earlier_release_cannot_be_resumed() {
        assert_eq!(Place::of(&started(0, 0)).after(0), Place::Unknown);
        assert_eq!(Place::of(&started(1, 0)).after(0), Place::Unknown);
    }
}
