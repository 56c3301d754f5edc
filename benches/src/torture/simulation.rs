//! Histories that are correct by construction: a register executes one operation at a time, at a time between its request and
//! its response; some responses are lost, and some of those operations as well.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::history::{Content, Operation, Patch, Request, Response, Sighting, State};
use super::watch_record::{Event, Kind, ListedStates, Segment, Selection, WatcherRecord};

/// History of one object.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedHistory {
    pub(crate) operations: Vec<Operation>,
    pub(crate) sightings: Vec<Sighting>,
}

/// Name of the only object.
pub(crate) const OBJECT: &str = "object";

impl SimulatedHistory {
    /// Creates a random history of this many operations.
    pub(crate) fn new(seed: u64, count: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let mut register = Register::default();
        let mut operations = Vec::new();
        for id in 1..=count {
            // Execution times are ordered; the times of requests and responses are random around them.
            let time = id * 100;
            let begun = time - random.random_range(0..250).min(time);
            let ended = time + random.random_range(0..250);
            let request = register.request(&mut random, id);
            let lost = random.random_bool(0.15);
            let response = if lost && random.random_bool(0.5) {
                Response::Unknown
            } else {
                let response = register.perform(&request, time);
                if lost { Response::Unknown } else { response }
            };
            let (client, object) = (format!("client-{id}"), OBJECT.to_owned());
            operations.push(Operation { id, client, object, begun, ended, request, response });
        }
        let seen = register.sightings.into_iter().map(|mut seen| {
            seen.at += random.random_range(0..300);
            seen
        });
        Self { operations, sightings: seen.collect() }
    }

    /// Returns the record of a watcher of this selection that listed at this revision.
    pub(crate) fn watched(&self, selection: Selection, revision: u64) -> WatcherRecord {
        let mut inside: Option<State> = None;
        let mut segment =
            Segment { list: ListedStates { revision, ..ListedStates::default() }, ..Segment::default() };
        for seen in &self.sightings {
            let mut state = seen.state.clone();
            let matches = !seen.deleted && selection.matches(OBJECT, &state);
            if seen.revision > revision {
                let kind = match (&inside, matches) {
                    (None, false) => None,
                    (None, true) => Some(Kind::Added),
                    (Some(_), true) => Some(Kind::Modified),
                    (Some(_), false) => Some(Kind::Deleted),
                };
                state.revision = seen.revision;
                let object = OBJECT.to_owned();
                segment.events.extend(kind.map(|kind| Event {
                    at: seen.at,
                    kind,
                    object,
                    state: state.clone(),
                }));
            }
            inside = matches.then_some(state);
            if seen.revision <= revision {
                segment.list.states =
                    inside.clone().map(|state| (OBJECT.to_owned(), state)).into_iter().collect();
            }
            segment.reached = seen.revision.max(revision);
        }
        WatcherRecord { name: format!("{selection:?}"), selection, segments: vec![segment], resumed: 0 }
    }
}

#[derive(Default)]
struct Register {
    revision: u64,
    uids: u64,
    state: Option<State>,
    past: BTreeMap<u64, State>,
    sightings: Vec<Sighting>,
}

impl Register {
    fn request(&self, random: &mut StdRng, id: u64) -> Request {
        let group = if random.random_bool(0.5) { "a" } else { "b" }.to_owned();
        // A client may use an old state, or one of a deleted object.
        let last_seen =
            if random.random_bool(0.7) { self.state.as_ref() } else { self.past.values().next_back() };
        match (random.random_range(0..10), last_seen) {
            (0..3, _) => Request::Read,
            (3..6, Some(state)) => {
                let content =
                    Content { writer: id, count: state.content.count + 1, group, ..state.content.clone() };
                Request::Update(state.revision, content)
            }
            (6..8, _) => {
                Request::Patch(Patch { writer: id, mark: format!("{}", id % 3), group: Some(group) })
            }
            (8, last_seen) => {
                Request::Delete(last_seen.map(|state| state.uid.clone()).filter(|_| id.is_multiple_of(2)))
            }
            _ => Request::Create(Content { writer: id, group, ..Content::default() }),
        }
    }

    fn perform(&mut self, request: &Request, at: u64) -> Response {
        match (request, self.state.clone()) {
            (Request::Create(_), Some(_)) => Response::Exists,
            (Request::Create(content), None) => {
                self.uids += 1;
                self.write(format!("uid-{}", self.uids), content.clone(), at)
            }
            (_, None) => Response::Absent,
            (Request::Read, Some(state)) => Response::State(state),
            (Request::Update(expected, _), Some(state)) if *expected != state.revision => Response::Conflict,
            (Request::Update(_, content), Some(state)) => self.write(state.uid, content.clone(), at),
            (Request::Patch(patch), Some(state)) => self.write(state.uid, state.content.patched(patch), at),
            (Request::Delete(Some(uid)), Some(state)) if *uid != state.uid => Response::Conflict,
            (Request::Delete(_), Some(state)) => {
                self.revision += 7;
                self.state = None;
                let (revision, uid) = (self.revision, state.uid.clone());
                self.sightings.push(Sighting { at, revision, deleted: true, state });
                Response::Deleted(uid)
            }
        }
    }

    fn write(&mut self, uid: String, content: Content, at: u64) -> Response {
        // Other objects use revisions as well.
        self.revision += 3;
        let (revision, state) = (self.revision, State { uid, revision: self.revision, content });
        self.past.insert(revision, state.clone());
        self.state = Some(state.clone());
        self.sightings.push(Sighting { at, revision, deleted: false, state: state.clone() });
        Response::State(state)
    }
}
