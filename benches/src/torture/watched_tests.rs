//! Tests of watch_check.rs and observed_changes.rs: expected events have no violation, all others have one.

use proptest::prelude::*;

use super::super::history::{Content, Operation, Request, Response, State};
use super::super::simulation::{OBJECT, SimulatedHistory};
use super::*;

fn found(operations: &[Operation], watchers: &[WatcherRecord]) -> Vec<Violation> {
    let (past, mut violations) = ObservedChanges::of(operations, watchers);
    violations.extend(watchers.iter().flat_map(|watched| check(&past, watched)));
    violations
}

fn selections() -> [Selection; 4] {
    let group = |name: &str| Selection::Group(name.to_owned());
    [Selection::All, group("a"), group("b"), Selection::Name(OBJECT.to_owned())]
}

/// Returns the watchers of a history, from this revision on.
fn watchers(history: &SimulatedHistory, revision: u64) -> Vec<WatcherRecord> {
    selections().map(|selection| history.watched(selection, revision)).to_vec()
}

/// Returns all watchers, and one of them from its list on, with at least two events.
fn with_victim(
    seed: u64,
    count: u64,
    from: u64,
    victim: usize,
) -> Option<(SimulatedHistory, Vec<WatcherRecord>)> {
    let history = SimulatedHistory::new(seed, count);
    let mut watchers = watchers(&history, 0);
    watchers.push(history.watched(selections()[victim].clone(), from));
    let enough = watchers[4].segments[0].events.len() >= 2;
    enough.then_some((history, watchers))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn correct_records_have_no_violation(seed: u64, count in 1_u64..120, from in 0_u64..200) {
        let history = SimulatedHistory::new(seed, count);
        let mut all = watchers(&history, 0);
        all.extend(watchers(&history, from));
        let found = found(&history.operations, &all);
        prop_assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn lost_duplicated_moved_and_changed_events_are_found(
        seed: u64, count in 20_u64..120, from in 0_u64..60, victim in 0_usize..4, which: prop::sample::Index, how in 0..6,
    ) {
        let history_with_victim = with_victim(seed, count, from, victim);
        prop_assume!(history_with_victim.is_some());
        let Some((history, mut watchers)) = history_with_victim else { unreachable!() };
        let segment = &mut watchers[4].segments[0];
        let at = which.index(segment.events.len() - 1);
        match how {
            0 => drop(segment.events.remove(at)),
            1 => segment.events.insert(at, segment.events[at].clone()),
            2 => segment.events.swap(at, at + 1),
            3 => segment.events[at].state.content.count += 1,
            4 => segment.events[at].state.uid.push('x'),
            _ => segment.events[at].kind = match segment.events[at].kind {
                Kind::Added | Kind::Deleted => Kind::Modified,
                Kind::Modified => Kind::Added,
            },
        }
        // The content of an object that leaves a label selection is not compared, because its last selected state is sent.
        let by_label = how == 3 && segment.events[at].kind == Kind::Deleted;
        prop_assume!(!by_label);
        prop_assert!(!found(&history.operations, &watchers).is_empty());
    }

    #[test]
    fn a_wrong_list_is_found(seed: u64, count in 20_u64..120, from in 10_u64..100, older: bool) {
        let history = SimulatedHistory::new(seed, count);
        let mut all = watchers(&history, 0);
        let mut late = history.watched(Selection::All, from);
        let list = &mut late.segments[0].list;
        prop_assume!(!list.states.is_empty());
        if older {
            let stale = history.sightings.iter().find(|seen| !seen.deleted).map(|seen| seen.state.clone());
            prop_assume!(stale.as_ref() != list.states.get(OBJECT));
            list.states.extend(stale.map(|state| (OBJECT.to_owned(), state)));
        } else {
            list.states.clear();
            // The time of an unanswered deletion is unknown.
            let deletes = |one: &Operation| matches!(one.request, Request::Delete(_)) && one.response == Response::Unknown;
            prop_assume!(!history.operations.iter().any(deletes));
        }
        late.segments[0].events.clear();
        late.segments[0].reached = from;
        all.push(late);
        prop_assert!(!found(&history.operations, &all).is_empty());
    }
}

#[test]
fn an_invented_event_is_found() {
    let history = SimulatedHistory::new(7, 60);
    let mut all = watchers(&history, 0);
    let segment = &mut all[0].segments[0];
    let mut made_up = segment.events[3].clone();
    made_up.state.revision += 1;
    segment.events.insert(4, made_up);
    let found = found(&history.operations, &all);
    assert!(found.iter().any(|violation| violation.what.contains("expected")), "{found:#?}");
}

/// Returns a state of the object with this writer.
fn state(uid: &str, revision: u64, writer: u64, group: &str) -> State {
    let content = Content { writer, group: group.to_owned(), ..Content::default() };
    State { uid: uid.to_owned(), revision, content }
}

#[test]
fn a_deletion_seen_only_by_label_is_expected_by_all_watchers() {
    let (first, second) = (state("1", 5, 1, "b"), state("2", 7, 3, "a"));
    let operation = |id: u64, request, response| Operation {
        id,
        client: "c".to_owned(),
        object: OBJECT.to_owned(),
        begun: id,
        ended: id,
        request,
        response,
    };
    let operations = [
        operation(1, Request::Create(first.content.clone()), Response::State(first.clone())),
        operation(2, Request::Delete(None), Response::Deleted("1".to_owned())),
        operation(3, Request::Create(second.content.clone()), Response::State(second.clone())),
    ];
    let event = |kind, state: &State| Event { at: 9, kind, object: OBJECT.to_owned(), state: state.clone() };
    let watched = |selection, listed: u64, listed_states: &[&State], events: Vec<Event>| {
        let states = listed_states.iter().map(|state| (OBJECT.to_owned(), (*state).clone())).collect();
        let list = ListedStates { revision: listed, states };
        let segments = vec![Segment { list, events, reached: 8 }];
        WatcherRecord { name: "w".to_owned(), selection, segments, resumed: 0 }
    };
    let all = watched(Selection::All, 6, &[], vec![event(Kind::Added, &second)]);
    let deletion = event(Kind::Deleted, &State { revision: 6, ..first.clone() });
    let by_label = |events| watched(Selection::Group("b".to_owned()), 5, &[&first], events);
    let found = found(&operations, &[all.clone(), by_label(vec![deletion])]);
    assert!(found.is_empty(), "{found:#?}");
    let found = super::tests::found(&operations, &[all, by_label(Vec::new())]);
    assert_eq!(found.len(), 1, "{found:#?}");
}
