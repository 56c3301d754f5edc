//! Completeness and order of watches, and of the lists that they start with.
//!
//! The expected changes are the union of all observations (`observed_changes.rs`). Each watcher must have received, between its
//! list and the last revision that it reached, exactly the changes of its selection, each once, in order, and with the
//! right type: a change into the selection is ADDED, one out of it DELETED. Does not depend on how watches are resumed: a
//! watcher that had to list again has another segment.

use std::collections::BTreeMap;

use super::history::Violation;
use super::past::{Change, Past};
use super::shown::{Event, Kind, Listed, Segment, Selection, Watched};

/// Checks a watcher.
pub(crate) fn check(past: &Past<'_>, watched: &Watched) -> Vec<Violation> {
    let segments = watched.segments.iter();
    segments
        .flat_map(|segment| {
            let mut violations = list(past, &watched.name, &watched.selection, &segment.list);
            violations.extend(order(past, watched, segment));
            violations.extend(events(past, watched, segment));
            violations
        })
        .collect()
}

/// Checks that a list shows the states of one revision.
pub(crate) fn list(past: &Past<'_>, who: &str, selection: &Selection, list: &Listed) -> Vec<Violation> {
    let mut violations = Vec::new();
    for object in past.objects() {
        let then = past.at(object, list.revision);
        let there = then.state.filter(|state| selection.matches(object, state));
        let shown = list.states.get(object);
        let fits = match (shown, there) {
            (Some(shown), Some(there)) => shown == there,
            (None, None) => true,
            // The revision of a deletion that no watcher received is unknown.
            (None, Some(_)) => then.may_be_deleted,
            (Some(_), None) => false,
        };
        if !fits {
            let what = format!(
                "{who}: the list at revision {} shows {shown:?}, but there was {:?}",
                list.revision, then.state
            );
            violations.push(past.violation(object, what, [shown, then.state].into_iter().flatten()));
        }
    }
    violations
}

fn order(past: &Past<'_>, watched: &Watched, segment: &Segment) -> Option<Violation> {
    let mut last = segment.list.revision;
    for event in &segment.events {
        let revision = event.state.revision;
        if revision <= last {
            let what = format!("{}: revision {revision} was shown after {last}", watched.name);
            return Some(past.violation(&event.object, what, [&event.state]));
        }
        last = revision;
    }
    None
}

/// Compares the received events with the expected ones.
fn events(past: &Past<'_>, watched: &Watched, segment: &Segment) -> Vec<Violation> {
    let shown: BTreeMap<u64, &Event> =
        segment.events.iter().map(|event| (event.state.revision, event)).collect();
    let mut inside: BTreeMap<&str, ()> =
        segment.list.states.keys().map(|object| (object.as_str(), ())).collect();
    let mut violations = Vec::new();
    for (revision, (object, change)) in past.between(segment.list.revision, segment.reached) {
        let was = inside.contains_key(object);
        let state = change.state();
        let is = matches!(change, Change::State(_)) && watched.selection.matches(object, state);
        let wanted = match (was, is) {
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
        let event = shown.get(&revision);
        let fits = match (wanted, event) {
            (None, None) => true,
            (Some(kind), Some(event)) => {
                // An object that leaves a selection is sent in its last selected state, at the revision of the change.
                let content = kind == Kind::Deleted || event.state.content == state.content;
                event.kind == kind && event.object == object && event.state.uid == state.uid && content
            }
            _ => false,
        };
        if !fits {
            let what = format!(
                "{} (selects {:?}, listed at {}, reached {}): revision {revision} had to be shown as {wanted:?}, and was as {event:?}",
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
