//! Completeness and order of watches, and of the lists that they start with.
//!
//! The expected changes are the union of all observations (`observed_changes.rs`). Each watcher must have received, between its
//! list and the last revision that it reached, exactly the changes of its selection, each once, in order, and with the
//! right type: a change into the selection is ADDED, one out of it DELETED. Does not depend on how watches are resumed: a
//! watcher that had to list again has another segment.

use std::collections::BTreeMap;

use super::history::Violation;
use super::observed_changes::{Change, ObservedChanges};
use super::watch_record::{Event, Kind, ListedStates, Segment, Selection, WatcherRecord};

/// Checks a watcher.
pub(crate) fn check(past: &ObservedChanges<'_>, watched: &WatcherRecord) -> Vec<Violation> {
    let segments = watched.segments.iter();
    segments
        .flat_map(|segment| {
            let mut violations = check_list(past, &watched.name, &watched.selection, &segment.list);
            violations.extend(check_order(past, watched, segment));
            violations.extend(check_events(past, watched, segment));
            violations
        })
        .collect()
}

/// Checks that a list shows the states of one revision.
pub(crate) fn check_list(
    past: &ObservedChanges<'_>,
    client: &str,
    selection: &Selection,
    list: &ListedStates,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    for object in past.objects() {
        let expected = past.at(object, list.revision);
        let selected = expected.state.filter(|state| selection.matches(object, state));
        let listed = list.states.get(object);
        let is_expected = match (listed, selected) {
            (Some(listed), Some(selected)) => listed == selected,
            (None, None) => true,
            // The revision of a deletion that no watcher received is unknown.
            (None, Some(_)) => expected.may_be_deleted,
            (Some(_), None) => false,
        };
        if !is_expected {
            let what = format!(
                "{client}: the list at revision {} contains {listed:?}, expected {:?}",
                list.revision, expected.state
            );
            violations.push(past.violation(object, what, [listed, expected.state].into_iter().flatten()));
        }
    }
    violations
}

fn check_order(past: &ObservedChanges<'_>, watched: &WatcherRecord, segment: &Segment) -> Option<Violation> {
    let mut last = segment.list.revision;
    for event in &segment.events {
        let revision = event.state.revision;
        if revision <= last {
            let what = format!("{}: revision {revision} arrived after {last}", watched.name);
            return Some(past.violation(&event.object, what, [&event.state]));
        }
        last = revision;
    }
    None
}

/// Compares the received events with the expected ones.
fn check_events(past: &ObservedChanges<'_>, watched: &WatcherRecord, segment: &Segment) -> Vec<Violation> {
    let received: BTreeMap<u64, &Event> =
        segment.events.iter().map(|event| (event.state.revision, event)).collect();
    let mut inside: BTreeMap<&str, ()> =
        segment.list.states.keys().map(|object| (object.as_str(), ())).collect();
    let mut violations = Vec::new();
    for (revision, (object, change)) in past.between(segment.list.revision, segment.reached) {
        let was = inside.contains_key(object);
        let state = change.state();
        let is = matches!(change, Change::State(_)) && watched.selection.matches(object, state);
        let expected_kind = match (was, is) {
            (false, false) => None,
            (false, true) => Some(Kind::Added),
            (true, true) => Some(Kind::Modified),
            (true, false) => Some(Kind::Deleted),
        };
        if is {
            inside.insert(object, ());
        } else {
            inside.remove(object);
        }
        let event = received.get(&revision);
        let is_expected = match (expected_kind, event) {
            (None, None) => true,
            (Some(kind), Some(event)) => {
                // An object that leaves a selection is sent in its last selected state, at the revision of the change.
                let content = kind == Kind::Deleted || event.state.content == state.content;
                event.kind == kind && event.object == object && event.state.uid == state.uid && content
            }
            _ => false,
        };
        if !is_expected {
            let what = format!(
                "{} (selects {:?}, listed at {}, reached {}): revision {revision} arrived as {event:?}, expected {expected_kind:?}",
                watched.name, watched.selection, segment.list.revision, segment.reached
            );
            violations.push(past.violation(object, what, [state]));
        }
    }
    violations
}

#[cfg(test)]
#[path = "watched_tests.rs"]
mod tests;
