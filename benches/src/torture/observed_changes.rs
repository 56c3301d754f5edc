//! All changes by revision: the union of the responses to clients and the events of watchers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::history::{Operation, Request, Response, State, Violation};
use super::watch_record::{Event, Kind, Selection, WatcherRecord};

/// Change of an object at a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change<'a> {
    /// The object has this state from the revision on.
    State(&'a State),
    /// The object is deleted; the state is the last one, with the revision of the deletion.
    Deleted(&'a State),
}

impl<'a> Change<'a> {
    /// Returns the state; for a deletion, the last one.
    pub(crate) fn state(self) -> &'a State {
        match self {
            Self::State(state) | Self::Deleted(state) => state,
        }
    }
}

/// An object at a revision.
pub(crate) struct ObjectAtRevision<'a> {
    pub(crate) state: Option<&'a State>,
    /// True if a client may have deleted the object by then and no watcher received the deletion.
    pub(crate) may_be_deleted: bool,
}

/// All observed changes.
pub(crate) struct ObservedChanges<'a> {
    by_revision: BTreeMap<u64, (&'a str, Change<'a>)>,
    by_object: BTreeMap<&'a str, BTreeMap<u64, Change<'a>>>,
    operations: HashMap<u64, &'a Operation>,
    /// Uids for which a watcher received a deletion.
    seen_deletions: BTreeSet<&'a str>,
    /// Objects with uids that a client may have deleted; `None` for any uid of the object.
    possible_deletions: HashMap<&'a str, Vec<Option<&'a str>>>,
}

impl<'a> ObservedChanges<'a> {
    /// Merges all observations; returns violations for different changes at one revision.
    pub(crate) fn of(operations: &'a [Operation], watchers: &'a [WatcherRecord]) -> (Self, Vec<Violation>) {
        let mut past = Self {
            by_revision: BTreeMap::new(),
            by_object: BTreeMap::new(),
            operations: operations.iter().map(|one| (one.id, one)).collect(),
            seen_deletions: BTreeSet::new(),
            possible_deletions: HashMap::new(),
        };
        let mut violations = Vec::new();
        for operation in operations {
            match (&operation.request, &operation.response) {
                (_, Response::State(state)) => {
                    violations.extend(past.add(&operation.object, Change::State(state)));
                }
                (_, Response::Deleted(uid)) => {
                    past.possible_deletions.entry(&operation.object).or_default().push(Some(uid));
                }
                (Request::Delete(uid), Response::Unknown) => {
                    past.possible_deletions.entry(&operation.object).or_default().push(uid.as_deref());
                }
                _ => {}
            }
        }
        for watched in watchers {
            for segment in &watched.segments {
                for (object, state) in &segment.list.states {
                    violations.extend(past.add(object, Change::State(state)));
                }
                for event in &segment.events {
                    violations.extend(past.add_event(&watched.selection, event));
                }
            }
        }
        for segment in watchers.iter().flat_map(|watched| &watched.segments) {
            violations.extend(segment.events.iter().filter_map(|event| past.infer_deletion(event)));
        }
        (past, violations)
    }

    /// Adds the deletion if only watchers with a label selector know the revision at which an object left the selection, and the
    /// object may have been deleted.
    fn infer_deletion(&mut self, event: &'a Event) -> Option<Violation> {
        let Event { kind, object, state, .. } = event;
        let is_known = *kind != Kind::Deleted || self.by_revision.contains_key(&state.revision);
        let uid = state.uid.as_str();
        let mut later =
            self.by_object.get(object.as_str())?.range(state.revision..).map(|(_, later)| later.state());
        if is_known || !self.may_be_deleted(object, uid) || later.any(|later| later.uid == uid) {
            return None;
        }
        self.seen_deletions.insert(uid);
        self.add(object, Change::Deleted(state))
    }

    /// Returns true if a client may have deleted the object of this uid.
    fn may_be_deleted(&self, object: &str, uid: &str) -> bool {
        let mut deletions = self.possible_deletions.get(object).into_iter().flatten();
        deletions.any(|deleted_uid| deleted_uid.is_none_or(|deleted_uid| deleted_uid == uid))
    }

    fn add_event(&mut self, selection: &Selection, event: &'a Event) -> Option<Violation> {
        let change = match (event.kind, selection) {
            // The object may only have left the selection; watchers of all objects know the change.
            (Kind::Deleted, Selection::Group(_)) => return None,
            (Kind::Deleted, _) => {
                self.seen_deletions.insert(&event.state.uid);
                Change::Deleted(&event.state)
            }
            _ => Change::State(&event.state),
        };
        self.add(&event.object, change)
    }

    fn add(&mut self, object: &'a str, change: Change<'a>) -> Option<Violation> {
        let revision = change.state().revision;
        let (other_object, other) = *self.by_revision.entry(revision).or_insert((object, change));
        self.by_object.entry(object).or_default().entry(revision).or_insert(change);
        if (other_object, other) == (object, change) {
            return None;
        }
        let what = format!(
            "revision {revision} has two changes, {other:?} of {other_object} and {change:?} of {object}"
        );
        Some(self.violation(object, what, [other.state(), change.state()]))
    }

    /// Returns every observed object.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &'a str> {
        self.by_object.keys().copied()
    }

    /// Returns an object at a revision.
    pub(crate) fn at(&self, object: &str, revision: u64) -> ObjectAtRevision<'a> {
        let changes = self.by_object.get(object);
        let last = changes.and_then(|changes| changes.range(..=revision).next_back());
        let state = match last {
            Some((_, Change::State(state))) => Some(*state),
            _ => None,
        };
        let may_be_deleted = state.is_some_and(|state| {
            let after = changes.into_iter().flat_map(|changes| changes.range(revision + 1..));
            let mut later = after.map(|(_, change)| change.state());
            !self.seen_deletions.contains(state.uid.as_str())
                && self.may_be_deleted(object, &state.uid)
                && !later.any(|later| later.uid == state.uid)
        });
        ObjectAtRevision { state, may_be_deleted }
    }

    /// Returns the changes after one revision, up to another one.
    pub(crate) fn between(
        &self,
        after: u64,
        until: u64,
    ) -> impl Iterator<Item = (u64, (&'a str, Change<'a>))> {
        let range = (after < until).then(|| self.by_revision.range(after + 1..=until));
        range.into_iter().flatten().map(|(revision, change)| (*revision, *change))
    }

    /// Creates a violation with the writers of these states.
    pub(crate) fn violation<'s>(
        &self,
        object: &str,
        what: String,
        states: impl IntoIterator<Item = &'s State>,
    ) -> Violation {
        let writers = states.into_iter().filter_map(|state| self.operations.get(&state.content.writer));
        Violation::new(object, what, writers.copied())
    }
}
