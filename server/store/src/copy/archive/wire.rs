//! Protocol buffer of a part of an archive. Tags never change.

use prost::Message;

use super::{ArchiveContents, ArchivePart, ArchivedState, RevisionGap, TimeMark};
use crate::key::{Key, Resource};

#[derive(Clone, PartialEq, Message)]
struct State {
    #[prost(string, tag = "1")]
    group: String,
    #[prost(string, tag = "2")]
    resource: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "4")]
    name: String,
    #[prost(int64, tag = "5")]
    revision: i64,
    #[prost(int64, tag = "6")]
    previous: i64,
    #[prost(bool, tag = "7")]
    deleted: bool,
    #[prost(int64, tag = "8")]
    until: i64,
    #[prost(bytes = "vec", tag = "9")]
    value: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Mark {
    #[prost(int64, tag = "1")]
    revision: i64,
    #[prost(int64, tag = "2")]
    at: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Since {
    #[prost(string, tag = "1")]
    group: String,
    #[prost(string, tag = "2")]
    resource: String,
    #[prost(int64, tag = "3")]
    since: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct RevisionRange {
    #[prost(int64, tag = "1")]
    after: i64,
    #[prost(int64, tag = "2")]
    until: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ContentsMessage {
    #[prost(message, repeated, tag = "1")]
    since: Vec<Since>,
    #[prost(message, repeated, tag = "2")]
    lost: Vec<RevisionRange>,
}

#[derive(Clone, PartialEq, Message)]
struct Part {
    #[prost(message, repeated, tag = "1")]
    states: Vec<State>,
    #[prost(message, repeated, tag = "2")]
    marks: Vec<Mark>,
    #[prost(message, optional, tag = "3")]
    kept: Option<ContentsMessage>,
}

impl ArchivePart {
    /// Encodes the part.
    pub fn encode(self) -> Vec<u8> {
        let marks = self.marks.into_iter().map(|TimeMark { revision, at }| Mark { revision, at }).collect();
        let states = self.states.into_iter().map(State::from).collect();
        Part { states, marks, kept: self.contents.map(ContentsMessage::from) }.encode_to_vec()
    }

    /// Decodes a part. Returns the reason if the bytes are invalid.
    ///
    /// # Errors
    /// A description of the problem.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let Part { states, marks, kept } = Part::decode(bytes).map_err(|error| error.to_string())?;
        let marks = marks.into_iter().map(|Mark { revision, at }| TimeMark { revision, at }).collect();
        let states = states.into_iter().map(ArchivedState::try_from).collect::<Result<_, _>>()?;
        Ok(Self { states, marks, contents: kept.map(ArchiveContents::from) })
    }
}

impl From<ArchivedState> for State {
    fn from(state: ArchivedState) -> Self {
        let ArchivedState { key, revision, previous, deleted, until, value } = state;
        Self {
            group: key.resource().group.clone(),
            resource: key.resource().resource.clone(),
            namespace: key.namespace().to_owned(),
            name: key.name().to_owned(),
            revision,
            previous,
            deleted,
            until,
            value,
        }
    }
}

impl TryFrom<State> for ArchivedState {
    type Error = String;

    fn try_from(state: State) -> Result<Self, String> {
        let State { group, resource, namespace, name, revision, previous, deleted, until, value } = state;
        let key = Key::new(&Resource::new(group, resource), &namespace, &name);
        if name.contains('/') || namespace.contains('/') || name.is_empty() {
            return Err(format!("{key}: invalid namespace or name"));
        }
        if revision <= 0 || until < revision {
            return Err(format!("{key}: a past state of revision {revision} cannot end at {until}"));
        }
        if value.is_empty() {
            return Err(format!("{key}: the state of revision {revision} has no value"));
        }
        Ok(Self { key, revision, previous, deleted, until, value })
    }
}

impl From<ArchiveContents> for ContentsMessage {
    fn from(ArchiveContents { since, gaps }: ArchiveContents) -> Self {
        let since = since.into_iter().map(|(resource, since)| Since {
            group: resource.group.clone(),
            resource: resource.resource.clone(),
            since,
        });
        let lost = gaps.into_iter().map(|RevisionGap { after, until }| RevisionRange { after, until });
        Self { since: since.collect(), lost: lost.collect() }
    }
}

impl From<ContentsMessage> for ArchiveContents {
    fn from(ContentsMessage { since, lost }: ContentsMessage) -> Self {
        let since =
            since.into_iter().map(|row| (Resource::new(row.group, row.resource), row.since)).collect();
        let gaps =
            lost.into_iter().map(|RevisionRange { after, until }| RevisionGap { after, until }).collect();
        Self { since, gaps }
    }
}
