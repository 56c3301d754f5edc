//! Watch of any resource that resumes after lost connections.

use futures::stream::{self, Stream};
use serde::Deserialize;
use tonic::{Code, Status, Streaming};

use super::Client;
use super::partial_revision::PartialRevision;
use super::query::Query;
use super::watch::wait_before_retry;
use crate::objects::watch_response::Step;
use crate::objects::{Call, WatchRequest, WatchResponse};

/// Item of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchEvent {
    /// An event as a line of JSON with a line feed: `{"type":"ADDED","object":{...}}`. The types are ADDED, MODIFIED and DELETED.
    Line(Vec<u8>),
    /// The revision of the watch has expired, and events were missed. Discard all known objects: the current ones follow as
    /// ADDED events.
    Restarted,
}

/// Fields of an event that the client reads.
#[derive(Deserialize)]
struct EventHead {
    r#type: EventType,
    #[serde(default)]
    object: ErrorStatus,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "UPPERCASE")]
enum EventType {
    Bookmark,
    Error,
    #[serde(other)]
    Change,
}

/// Fields of a Status.
#[derive(Default, Deserialize)]
struct ErrorStatus {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    message: String,
}

struct ResourceWatchState {
    client: Client,
    call: Call,
    query: Query,
    /// Revision to resume after; empty to start with the current objects.
    revision: String,
    /// Number of initial frames still to come, and the revision after them.
    initial: (u64, i64),
    /// Events of a partially received revision.
    partial: PartialRevision,
    stream: Option<Streaming<WatchResponse>>,
    failures: u32,
}

/// Watches the target of a call. The query has no revision.
pub(super) fn watch(
    client: Client,
    call: Call,
    query: Query,
    revision: &str,
) -> impl Stream<Item = Result<WatchEvent, Status>> + Send + use<> {
    let revision = revision.to_owned();
    let partial = PartialRevision::default();
    let state = ResourceWatchState {
        client,
        call,
        query,
        revision,
        initial: (0, 0),
        partial,
        stream: None,
        failures: 0,
    };
    stream::unfold(Some(state), |state| async move {
        let mut state = state?;
        match state.next().await {
            Ok(event) => Some((Ok(event), Some(state))),
            Err(status) => Some((Err(status), None)),
        }
    })
}

impl ResourceWatchState {
    async fn next(&mut self) -> Result<WatchEvent, Status> {
        loop {
            match self.step().await {
                Ok(Some(event)) => return Ok(event),
                Ok(None) => {}
                Err(status) if status.code() == Code::OutOfRange && !self.revision.is_empty() => {
                    self.stream = None;
                    self.revision.clear();
                    return Ok(WatchEvent::Restarted);
                }
                Err(status) => {
                    self.stream = None;
                    self.failures = self.failures.saturating_add(1);
                    wait_before_retry(status, self.failures).await?;
                }
            }
        }
    }

    /// Returns an event, or `None` for messages that are not passed to the caller.
    async fn step(&mut self) -> Result<Option<WatchEvent>, Status> {
        let Some(stream) = &mut self.stream else { return self.open().await };
        let Some(message) = stream.message().await? else {
            self.stream = None;
            return Ok(None);
        };
        self.failures = 0;
        if !self.partial.accept(&message) {
            return Ok(None);
        }
        match message.step {
            Some(Step::Started(started)) => {
                self.initial = (started.initial_frames, started.revision);
                self.record_revision(0);
                Ok(None)
            }
            Some(Step::Frames(line)) => {
                self.initial.0 = self.initial.0.saturating_sub(1);
                self.record_revision(message.revision);
                event(line.into())
            }
            Some(Step::Refused(refused)) => {
                Err(Status::failed_precondition(String::from_utf8_lossy(&refused.body).into_owned()))
            }
            None => Ok(None),
        }
    }

    /// Opens the stream. A stream that was interrupted among its initial frames starts again, because
    /// these frames are ordered by key, not by revision.
    async fn open(&mut self) -> Result<Option<WatchEvent>, Status> {
        let mut query = self.query.clone();
        query.add("resourceVersion", &self.revision);
        let call = Call { query: query.into_string(), ..self.call.clone() };
        let opened = self.client.objects_watch().watch(WatchRequest { call: Some(call) }).await?;
        self.partial.resume();
        self.stream = Some(opened.into_inner());
        Ok(None)
    }

    /// Records the revision that the watch has reached.
    fn record_revision(&mut self, revision: i64) {
        let at = if revision > 0 { revision } else { self.initial.1 };
        if self.initial.0 == 0 && at > 0 {
            self.revision = at.to_string();
        }
    }
}

fn event(line: Vec<u8>) -> Result<Option<WatchEvent>, Status> {
    let head: EventHead =
        serde_json::from_slice(&line).map_err(|error| Status::data_loss(error.to_string()))?;
    match head.r#type {
        EventType::Change => Ok(Some(WatchEvent::Line(line))),
        EventType::Bookmark => Ok(None),
        EventType::Error if head.object.code == 410 => Err(Status::out_of_range(head.object.message)),
        EventType::Error => Err(Status::unavailable(head.object.message)),
    }
}
