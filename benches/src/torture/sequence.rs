//! The sequence of one object's states in the order of revisions, with the writer and the possible start of each state.
//!
//! Rejects what no order of operations explains: two states at one revision, a state without a writer or with a refused
//! writer, a write that took effect twice, an object that returned after its deletion, a violated precondition.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use super::history::{Operation, Request, Response, Sighting, State, Violation};

/// Event that limits a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// No event: the start or the end of the run.
    Start,
    /// An operation's request or response.
    Operation(u64),
    /// A watcher received this revision.
    Seen(u64),
}

impl Bound {
    /// Returns the operation's id.
    pub(crate) fn id(self) -> Option<u64> {
        if let Self::Operation(id) = self { Some(id) } else { None }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("the run"),
            Self::Operation(id) => write!(f, "operation {id}"),
            Self::Seen(revision) => write!(f, "a watcher saw revision {revision}"),
        }
    }
}

/// A state, or the absence of the object, and its possible start.
#[derive(Clone, Debug)]
pub(crate) struct Step<'a> {
    /// State; `None` if the object does not exist.
    pub(crate) state: Option<&'a State>,
    /// Operation that wrote the state, if known.
    pub(crate) writer: Option<u64>,
    /// Earliest possible start.
    pub(crate) earliest: (u64, Bound),
    /// Latest possible start.
    pub(crate) latest: (u64, Bound),
}

impl<'a> Step<'a> {
    fn new(state: Option<&'a State>, writer: Option<&Operation>) -> Self {
        let bound = writer.map_or(Bound::Start, |writer| Bound::Operation(writer.id));
        Self {
            state,
            writer: writer.map(|writer| writer.id),
            earliest: (writer.map_or(0, |writer| writer.begun), bound),
            latest: (writer.map_or(u64::MAX, Operation::latest), bound),
        }
    }

    /// Records that the step did not start before this time.
    pub(crate) fn not_before(&mut self, time: u64, why: Bound) {
        if time > self.earliest.0 {
            self.earliest = (time, why);
        }
    }

    /// Records that the step started before this time.
    pub(crate) fn not_after(&mut self, time: u64, why: Bound) {
        if time < self.latest.0 {
            self.latest = (time, why);
        }
    }
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.state, self.writer) {
            (Some(state), _) => {
                write!(f, "revision {} of operation {}", state.revision, state.content.writer)
            }
            (None, Some(writer)) => write!(f, "deletion by operation {writer}"),
            (None, None) => f.write_str("absence"),
        }
    }
}

/// The sequence of one object.
pub(crate) struct Sequence<'a> {
    /// Steps, from the initial absence on.
    pub(crate) steps: Vec<Step<'a>>,
    by_id: HashMap<u64, &'a Operation>,
    positions: HashMap<u64, usize>,
    /// Writes without a response whose state was never seen: they may have taken effect.
    unseen: Vec<&'a Operation>,
}

impl<'a> Sequence<'a> {
    /// Orders the observations of an object.
    pub(crate) fn of(
        object: &str,
        operations: &[&'a Operation],
        sightings: &[&'a Sighting],
    ) -> Result<Self, Vec<Violation>> {
        let by_id: HashMap<u64, &Operation> = operations.iter().map(|one| (one.id, *one)).collect();
        let states = states(object, operations, sightings)?;
        let violations = check_writers(object, &states, &by_id);
        if !violations.is_empty() {
            return Err(violations);
        }
        let wrote: BTreeSet<u64> = states.values().map(|state| state.content.writer).collect();
        let unseen = operations.iter().copied().filter(|operation| {
            operation.response == Response::Unknown
                && operation.request != Request::Read
                && !wrote.contains(&operation.id)
        });
        let mut sequence =
            Self { steps: Vec::new(), by_id, positions: HashMap::new(), unseen: unseen.collect() };
        sequence.arrange(object, &states, operations, sightings).map_err(|violation| vec![violation])?;
        Ok(sequence)
    }

    fn arrange(
        &mut self,
        object: &str,
        states: &BTreeMap<u64, &'a State>,
        operations: &[&'a Operation],
        sightings: &[&'a Sighting],
    ) -> Result<(), Violation> {
        let uids = states_by_uid(object, states, &self.by_id)?;
        let deletions = deletions(object, operations)?;
        for (uid, deletion) in &deletions {
            let was_seen = uids.iter().any(|(known_uid, _)| known_uid == uid);
            if !was_seen && !self.unseen.iter().any(|one| matches!(one.request, Request::Create(_))) {
                let what = format!("uid {uid} was deleted, but no operation created it");
                return Err(Violation::new(object, what, [*deletion]));
            }
        }
        self.steps.push(Step::new(None, None));
        self.steps[0].latest.0 = 0;
        for (at, (uid, states_of_uid)) in uids.iter().enumerate() {
            for state in states_of_uid {
                self.positions.insert(state.revision, self.steps.len());
                let writer = self.by_id.get(&state.content.writer).copied();
                let mut step = Step::new(Some(state), writer);
                if self.steps.last().is_some_and(|last| last.state.is_none())
                    && writer.is_some_and(|writer| !matches!(writer.request, Request::Create(_)))
                {
                    // The created state was never seen: it preceded this one.
                    let creation = self.hidden_creation(object, state)?;
                    step.not_before(creation.0, creation.1);
                }
                self.steps.push(step);
            }
            let seen = sightings.iter().filter(|seen| seen.deleted && seen.state.uid == *uid);
            let ended = seen.map(|seen| (seen.at, Bound::Seen(seen.revision))).min_by_key(|seen| seen.0);
            let must = ended.is_some() || at + 1 < uids.len();
            self.add_absence(object, uid, deletions.get(uid).copied(), must, ended)?;
        }
        for seen in sightings.iter().filter(|seen| !seen.deleted) {
            if let Some(at) = self.positions.get(&seen.revision) {
                self.steps[*at].not_after(seen.at, Bound::Seen(seen.revision));
            }
        }
        Ok(())
    }

    fn hidden_creation(&self, object: &str, first: &State) -> Result<(u64, Bound), Violation> {
        let creations = self.unseen.iter().filter(|one| matches!(one.request, Request::Create(_)));
        let first_of = creations.min_by_key(|one| one.begun).ok_or_else(|| {
            let what =
                format!("revision {} of uid {} was not preceded by a creation", first.revision, first.uid);
            Violation::new(object, what, self.by_id.get(&first.content.writer).copied())
        })?;
        Ok((first_of.begun, Bound::Operation(first_of.id)))
    }

    /// Adds the absence after an object's deletion, if it was, must have been, or may have been deleted.
    fn add_absence(
        &mut self,
        object: &str,
        uid: &str,
        acknowledged: Option<&'a Operation>,
        must: bool,
        seen: Option<(u64, Bound)>,
    ) -> Result<(), Violation> {
        let mut step = if let Some(deletion) = acknowledged {
            Step::new(None, Some(deletion))
        } else {
            let may = |one: &&&Operation| match &one.request {
                Request::Delete(expected) => expected.as_ref().is_none_or(|expected| expected == uid),
                _ => false,
            };
            match self.unseen.iter().filter(may).min_by_key(|one| one.begun) {
                Some(deletion) => Step::new(None, Some(deletion)),
                None if must => {
                    let last = self.steps.last().and_then(|step| step.writer);
                    let what = format!("uid {uid} disappeared without a deletion");
                    let involved = last.and_then(|id| self.by_id.get(&id).copied());
                    return Err(Violation::new(object, what, involved));
                }
                None => return Ok(()),
            }
        };
        if let Some((at, why)) = seen {
            step.not_after(at, why);
        }
        self.steps.push(step);
        Ok(())
    }

    /// Returns the step of a revision.
    pub(crate) fn position(&self, revision: u64) -> Option<usize> {
        self.positions.get(&revision).copied()
    }

    /// Returns all operations.
    pub(crate) fn operations(&self) -> impl Iterator<Item = &'a Operation> {
        self.by_id.values().copied()
    }

    /// Returns true if a write of this kind may have taken effect by then although its state was never seen.
    pub(crate) fn may_hide(&self, by: u64, kind: impl Fn(&Request) -> bool) -> bool {
        self.unseen.iter().any(|one| one.begun <= by && kind(&one.request))
    }

    /// Returns true if such a write may have taken effect by then between a state and the next one. This is impossible if the
    /// write of the next state required this one to be current, or if the unseen write required another state.
    pub(crate) fn may_hide_after(&self, at: usize, by: u64, kind: impl Fn(&Request) -> bool) -> bool {
        let is_allowed = |request: &Request| match request {
            Request::Update(expected, _) => self.position(*expected).is_none_or(|expected| expected == at),
            _ => true,
        };
        !self.is_followed_directly(at) && self.may_hide(by, |request| kind(request) && is_allowed(request))
    }

    fn is_followed_directly(&self, at: usize) -> bool {
        let next = self.steps.get(at + 1).filter(|next| next.state.is_some());
        let writer = next.and_then(|next| self.by_id.get(&next.writer?));
        match (self.steps.get(at).and_then(|step| step.state), writer.map(|writer| &writer.request)) {
            (Some(state), Some(Request::Update(expected, _))) => *expected == state.revision,
            _ => false,
        }
    }

    /// Checks that each state is the result of its writer's request on the state before.
    pub(crate) fn check_contents(&self, object: &str) -> Vec<Violation> {
        let pairs = self.steps.windows(2).filter_map(|pair| Some((pair[0].state, pair[1].state?)));
        pairs.filter_map(|(before, after)| self.check_transition(object, before, after)).collect()
    }

    fn check_transition(&self, object: &str, before: Option<&State>, after: &State) -> Option<Violation> {
        let writer = *self.by_id.get(&after.content.writer)?;
        let changes = |request: &Request| matches!(request, Request::Update(..) | Request::Patch(_));
        let hidden = self
            .may_hide(writer.latest(), |request| changes(request) || matches!(request, Request::Create(_)));
        let wrong = match (&writer.request, before) {
            (Request::Create(content), None) if *content == after.content => None,
            (Request::Update(expected, content), Some(before)) => {
                if *content != after.content {
                    Some("differs from the content of the request".to_owned())
                } else if *expected < before.revision || (*expected > before.revision && !hidden) {
                    Some(format!(
                        "replaced revision {}, not {expected} as required: a lost update",
                        before.revision
                    ))
                } else {
                    None
                }
            }
            (Request::Patch(patch), Some(before)) => {
                let patched = before.content.patched(patch);
                (patched != after.content && !hidden).then(|| {
                    format!("is not revision {} with the patch applied: a lost update", before.revision)
                })
            }
            // The state that was patched or replaced was never seen.
            (Request::Update(..) | Request::Patch(_), None) if hidden => None,
            _ => Some("differs from the content of the request".to_owned()),
        };
        let what = format!("revision {} of operation {} {}", after.revision, writer.id, wrong?);
        let before = before.and_then(|before| self.by_id.get(&before.content.writer).copied());
        Some(Violation::new(object, what, before.into_iter().chain([writer])))
    }
}

/// Returns every seen state by revision.
fn states<'a>(
    object: &str,
    operations: &[&'a Operation],
    sightings: &[&'a Sighting],
) -> Result<BTreeMap<u64, &'a State>, Vec<Violation>> {
    let answered = operations.iter().filter_map(|one| match &one.response {
        Response::State(state) => Some(state),
        _ => None,
    });
    let seen = sightings.iter().filter(|seen| !seen.deleted).map(|seen| &seen.state);
    let mut states: BTreeMap<u64, &State> = BTreeMap::new();
    for state in answered.chain(seen) {
        let other = *states.entry(state.revision).or_insert(state);
        if other != state {
            let what = format!("revision {} has two states, {other:?} and {state:?}", state.revision);
            let involved = operations.iter().copied().filter(|one| {
                [other.content.writer, state.content.writer].contains(&one.id)
                    || matches!(&one.response, Response::State(of) if of.revision == state.revision)
            });
            return Err(vec![Violation::new(object, what, involved)]);
        }
    }
    Ok(states)
}

/// Checks that each state was written by a request that can have written it, and that each request wrote one state.
fn check_writers(
    object: &str,
    states: &BTreeMap<u64, &State>,
    by_id: &HashMap<u64, &Operation>,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut wrote: HashMap<u64, u64> = HashMap::new();
    for state in states.values() {
        let (id, revision) = (state.content.writer, state.revision);
        let Some(writer) = by_id.get(&id).copied() else {
            violations.push(Violation::new(object, format!("no operation wrote {state:?}"), []));
            continue;
        };
        let complaint = match (&writer.response, wrote.insert(id, revision)) {
            (_, Some(first)) => Some(format!("operation {id} took effect twice, at {first} and {revision}")),
            (Response::State(answered), _) if answered != *state => {
                Some(format!("operation {id} got the response {answered:?}, but wrote {state:?}"))
            }
            (Response::State(_) | Response::Unknown, _) => None,
            (refused, _) => Some(format!("operation {id} got the response {refused:?}, but wrote {state:?}")),
        };
        violations.extend(complaint.map(|what| Violation::new(object, what, [writer])));
    }
    violations
}

type StatesByUid<'a> = Vec<(String, Vec<&'a State>)>;

/// Returns the states of each uid in the order of revisions; those of different uids must not be mixed.
fn states_by_uid<'a>(
    object: &str,
    states: &BTreeMap<u64, &'a State>,
    by_id: &HashMap<u64, &Operation>,
) -> Result<StatesByUid<'a>, Violation> {
    let mut uids: StatesByUid<'a> = Vec::new();
    for state in states.values() {
        if let Some((uid, states_of_uid)) = uids.last_mut()
            && *uid == state.uid
        {
            states_of_uid.push(state);
        } else if uids.iter().any(|(uid, _)| *uid == state.uid) {
            let what = format!("uid {} exists again at revision {}", state.uid, state.revision);
            return Err(Violation::new(object, what, by_id.get(&state.content.writer).copied()));
        } else {
            uids.push((state.uid.clone(), vec![state]));
        }
    }
    Ok(uids)
}

/// Returns the acknowledged deletion of each uid.
fn deletions<'a>(
    object: &str,
    operations: &[&'a Operation],
) -> Result<HashMap<String, &'a Operation>, Violation> {
    let mut deletions: HashMap<String, &Operation> = HashMap::new();
    for operation in operations {
        let Response::Deleted(uid) = &operation.response else { continue };
        if let Some(first) = deletions.insert(uid.clone(), operation) {
            return Err(Violation::new(object, format!("uid {uid} was deleted twice"), [first, *operation]));
        }
    }
    Ok(deletions)
}
