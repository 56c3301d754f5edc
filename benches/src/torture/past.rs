//! What happened, as the union of what clients were answered and watchers were shown: every change by its revision.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::history::{Operation, Request, Response, State, Violation};
use super::shown::{Event, Kind, Selection, Watched};

/// What a revision did to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change<'a> {
    /// It has this state since.
    State(&'a State),
    /// It is gone; the state is the last one, with the revision of the deletion.
    Deleted(&'a State),
}

impl<'a> Change<'a> {
    /// The state, of a deletion the last one.
    pub(crate) fn state(self) -> &'a State {
        match self {
            Self::State(state) | Self::Deleted(state) => state,
        }
    }
}

/// An object at a revision.
pub(crate) struct Then<'a> {
    pub(crate) state: Option<&'a State>,
    /// Whether somebody may have deleted it by then without any watcher that was shown it.
    pub(crate) may_be_deleted: bool,
}

/// See the module.
pub(crate) struct Past<'a> {
    by_revision: BTreeMap<u64, (&'a str, Change<'a>)>,
    by_object: BTreeMap<&'a str, BTreeMap<u64, Change<'a>>>,
    operations: HashMap<u64, &'a Operation>,
    /// Uids that a watcher saw go.
    gone: BTreeSet<&'a str>,
    /// Uids, or any of the object, that a client may have deleted.
    deleted: HashMap<&'a str, Vec<Option<&'a str>>>,
}

impl<'a> Past<'a> {
    /// Joins everything; violations where two saw different things at one revision.
    pub(crate) fn of(operations: &'a [Operation], watchers: &'a [Watched]) -> (Self, Vec<Violation>) {
        let mut past = Self {
            by_revision: BTreeMap::new(),
            by_object: BTreeMap::new(),
            operations: operations.iter().map(|one| (one.id, one)).collect(),
            gone: BTreeSet::new(),
            deleted: HashMap::new(),
        };
        let mut violations = Vec::new();
        for operation in operations {
            match (&operation.request, &operation.response) {
                (_, Response::State(state)) => {
                    violations.extend(past.add(&operation.object, Change::State(state)));
                }
                (_, Response::Deleted(uid)) => {
                    past.deleted.entry(&operation.object).or_default().push(Some(uid));
                }
                (Request::Delete(uid), Response::Unknown) => {
                    past.deleted.entry(&operation.object).or_default().push(uid.as_deref());
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
                    violations.extend(past.shown(&watched.selection, event));
                }
            }
        }
        for segment in watchers.iter().flat_map(|watched| &watched.segments) {
            violations.extend(segment.events.iter().filter_map(|event| past.only_shown_by_label(event)));
        }
        (past, violations)
    }

    /// Where nobody else knows of a revision, one at which something left a selection by label was a deletion, if it can have been
    /// one.
    fn only_shown_by_label(&mut self, event: &'a Event) -> Option<Violation> {
        let Event { kind, object, state, .. } = event;
        let is_known = *kind != Kind::Deleted || self.by_revision.contains_key(&state.revision);
        let uid = state.uid.as_str();
        let mut later =
            self.by_object.get(object.as_str())?.range(state.revision..).map(|(_, later)| later.state());
        if is_known || !self.is_asked_to_go(object, uid) || later.any(|later| later.uid == uid) {
            return None;
        }
        self.gone.insert(uid);
        self.add(object, Change::Deleted(state))
    }

    /// Whether a client may have deleted the object of this uid.
    fn is_asked_to_go(&self, object: &str, uid: &str) -> bool {
        let mut by = self.deleted.get(object).into_iter().flatten();
        by.any(|asked| asked.is_none_or(|asked| asked == uid))
    }

    fn shown(&mut self, selection: &Selection, event: &'a Event) -> Option<Violation> {
        let change = match (event.kind, selection) {
            // The object may have left the selection only; those who see all say what happened.
            (Kind::Deleted, Selection::Group(_)) => return None,
            (Kind::Deleted, _) => {
                self.gone.insert(&event.state.uid);
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
        let what =
            format!("revision {revision} is both {other:?} of {other_object} and {change:?} of {object}");
        Some(self.violation(object, what, [other.state(), change.state()]))
    }

    /// Every object of which anything is known.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &'a str> {
        self.by_object.keys().copied()
    }

    /// An object at a revision.
    pub(crate) fn at(&self, object: &str, revision: u64) -> Then<'a> {
        let changes = self.by_object.get(object);
        let last = changes.and_then(|changes| changes.range(..=revision).next_back());
        let state = match last {
            Some((_, Change::State(state))) => Some(*state),
            _ => None,
        };
        let may_be_deleted = state.is_some_and(|state| {
            let after = changes.into_iter().flat_map(|changes| changes.range(revision + 1..));
            let mut later = after.map(|(_, change)| change.state());
            !self.gone.contains(state.uid.as_str())
                && self.is_asked_to_go(object, &state.uid)
                && !later.any(|later| later.uid == state.uid)
        });
        Then { state, may_be_deleted }
    }

    /// What happened after one revision, up to another one.
    pub(crate) fn between(
        &self,
        after: u64,
        until: u64,
    ) -> impl Iterator<Item = (u64, (&'a str, Change<'a>))> {
        let range = (after < until).then(|| self.by_revision.range(after + 1..=until));
        range.into_iter().flatten().map(|(revision, change)| (*revision, *change))
    }

    /// A violation with the writers of these states.
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
