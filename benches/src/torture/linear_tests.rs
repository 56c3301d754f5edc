//! Tests of linear.rs and sequence.rs: correct histories have no violation, each kind of wrong history has one.

use proptest::prelude::*;

use super::super::history::{Content, Patch, State};
use super::super::simulation::{OBJECT, SimulatedHistory};
use super::*;

fn content(writer: u64) -> Content {
    Content { writer, group: "a".to_owned(), ..Content::default() }
}

fn state(uid: &str, revision: u64, writer: u64) -> State {
    State { uid: uid.to_owned(), revision, content: content(writer) }
}

fn operation(id: u64, (begun, ended): (u64, u64), request: Request, response: Response) -> Operation {
    let (client, object) = (String::new(), OBJECT.to_owned());
    Operation { id, client, object, begun, ended, request, response }
}

fn created(id: u64, time: (u64, u64), revision: u64) -> Operation {
    let response = Response::State(state("u", revision, id));
    operation(id, time, Request::Create(content(id)), response)
}

fn updated(id: u64, time: (u64, u64), [from, to]: [u64; 2]) -> Operation {
    let response = Response::State(state("u", to, id));
    operation(id, time, Request::Update(from, content(id)), response)
}

fn read(id: u64, time: (u64, u64), (revision, writer): (u64, u64)) -> Operation {
    operation(id, time, Request::Read, Response::State(state("u", revision, writer)))
}

fn deleted(id: u64, time: (u64, u64), response: Response) -> Operation {
    operation(id, time, Request::Delete(None), response)
}

fn gone() -> Response {
    Response::Deleted("u".to_owned())
}

fn found(operations: &[Operation]) -> String {
    let operations: Vec<&Operation> = operations.iter().collect();
    let violations = check(OBJECT, &operations, &[]);
    violations.iter().map(|violation| violation.what.as_str()).collect::<Vec<_>>().join("; ")
}

#[test]
fn right_histories_have_no_fault() {
    let absent = |id, time| operation(id, time, Request::Read, Response::Absent);
    for (name, history) in [
        ("nothing", vec![]),
        (
            "a read beside a write sees either",
            vec![created(1, (0, 9), 5), absent(2, (1, 8)), read(3, (2, 7), (5, 1))],
        ),
        (
            "an update beside a read of the state before",
            vec![
                created(1, (0, 1), 5),
                updated(2, (2, 9), [5, 6]),
                read(3, (3, 8), (5, 1)),
                read(4, (4, 8), (6, 2)),
            ],
        ),
        (
            "a lost write without an observation",
            vec![created(1, (0, 1), 5), deleted(2, (2, 3), Response::Unknown), read(3, (8, 9), (5, 1))],
        ),
        (
            "a lost write that takes effect much later",
            vec![
                created(1, (0, 1), 5),
                deleted(2, (2, 3), Response::Unknown),
                read(3, (8, 9), (5, 1)),
                absent(4, (20, 21)),
            ],
        ),
        (
            "a deletion beside a read",
            vec![created(1, (0, 1), 5), deleted(2, (2, 9), gone()), read(3, (3, 8), (5, 1))],
        ),
    ] {
        assert_eq!(found(&history), "", "{name}");
    }
}

#[test]
fn wrong_histories_are_found() {
    let exists = operation(2, (2, 3), Request::Create(content(2)), Response::Exists);
    let conflict = operation(2, (2, 3), Request::Update(5, content(2)), Response::Conflict);
    let refused = operation(2, (2, 3), Request::Update(5, content(2)), Response::Conflict);
    let patch = Request::Patch(Patch { writer: 3, mark: "m".to_owned(), group: None });
    let patched = operation(3, (4, 5), patch, Response::State(state("u", 7, 3)));
    let unknown = |id, time| operation(id, time, Request::Update(5, content(id)), Response::Unknown);
    for (history, expected) in [
        // Lost: acknowledged, but missing afterwards.
        (
            vec![created(1, (0, 1), 5), operation(2, (2, 3), Request::Read, Response::Absent)],
            "the only states during it were",
        ),
        // Stale: the state before an acknowledged one.
        (
            vec![created(1, (0, 1), 5), updated(2, (2, 3), [5, 6]), read(3, (4, 5), (5, 1))],
            "not linearizable",
        ),
        // Early: read before the write was sent.
        (
            vec![created(1, (0, 1), 5), read(3, (2, 3), (6, 2)), updated(2, (4, 5), [5, 6])],
            "not linearizable",
        ),
        // Backward: two consecutive reads, the second of which misses a write that the first one returned.
        (
            vec![created(1, (0, 1), 5), unknown(2, (2, 3)), read(3, (4, 5), (6, 2)), read(4, (6, 7), (5, 1))],
            "not linearizable",
        ),
        // Revisions in another order than the writes.
        (
            vec![created(1, (0, 1), 5), updated(2, (2, 3), [5, 9]), updated(3, (4, 5), [9, 7])],
            "not linearizable",
        ),
        (
            vec![created(1, (0, 1), 5), updated(2, (2, 3), [5, 6]), updated(3, (2, 4), [5, 7])],
            "a lost update",
        ),
        (vec![created(1, (0, 1), 5), updated(2, (2, 3), [5, 6]), patched], "a lost update"),
        (vec![created(1, (0, 1), 5), refused, read(3, (4, 5), (6, 2))], "but wrote"),
        (
            vec![created(1, (0, 1), 5), unknown(2, (2, 3)), read(3, (4, 5), (6, 2)), read(4, (6, 7), (8, 2))],
            "twice",
        ),
        (vec![created(1, (0, 1), 5), read(2, (2, 3), (6, 77))], "no operation wrote"),
        (
            vec![created(1, (0, 1), 5), deleted(2, (2, 3), gone()), deleted(3, (4, 5), gone())],
            "deleted twice",
        ),
        (
            vec![created(1, (0, 1), 5), deleted(2, (2, 3), gone()), read(3, (4, 5), (5, 1))],
            "not linearizable",
        ),
        (vec![created(1, (0, 1), 5), created(2, (2, 3), 5)], "has two states"),
        (vec![deleted(1, (2, 3), gone())], "no operation created it"),
        (vec![exists], "the only states during it were"),
        (vec![created(1, (0, 1), 5), conflict], "the only states during it were"),
    ] {
        let violation = found(&history);
        assert!(violation.contains(expected), "{expected}: {violation}\n{history:#?}");
    }
}

#[test]
fn an_unseen_write_explains_conflicts_until_a_write_excludes_it() {
    let unanswered =
        |request: Request| vec![created(1, (0, 1), 5), operation(2, (2, 3), request, Response::Unknown)];
    let conflict =
        |id, time, revision| operation(id, time, Request::Update(revision, content(id)), Response::Conflict);
    let patch = || Request::Patch(Patch { writer: 2, mark: "m".to_owned(), group: None });
    for (request, last_is_judged) in [(Request::Update(5, content(2)), true), (patch(), false)] {
        // The write may have been executed, and no client has seen its state.
        let mut history = unanswered(request);
        history.push(conflict(3, (4, 5), 5));
        assert_eq!(found(&history), "");
        // The update of revision 5 proves that it had not been executed by then.
        history.push(updated(4, (6, 7), [5, 6]));
        let wrong = found(&history);
        assert!(wrong.contains("operation 3 got the response Conflict"), "{wrong}");
        history.remove(2);
        assert_eq!(found(&history), "");
        // A patch may still be executed later, an update of revision 5 cannot.
        history.push(conflict(5, (8, 9), 6));
        let wrong = found(&history);
        assert_eq!(wrong.contains("operation 5 got the response Conflict"), last_is_judged, "{wrong}");
        history.push(updated(6, (10, 11), [6, 7]));
        assert!(found(&history).contains("operation 5 got the response Conflict"));
    }
}

#[test]
fn a_violation_lists_only_the_operations_that_prove_it() {
    let mut history = vec![created(1, (0, 1), 5), updated(2, (2, 3), [5, 6])];
    history.extend((10..30).map(|id| read(id, (id * 10, id * 10 + 1), (6, 2))));
    history.push(read(99, (50, 51), (5, 1)));
    let operations: Vec<&Operation> = history.iter().collect();
    let violations = check(OBJECT, &operations, &[]);
    let [violation] = violations.as_slice() else { panic!("{violations:#?}") };
    let ids: Vec<u64> = violation.operations.iter().map(|operation| operation.id).collect();
    assert_eq!(ids, [2, 99], "{violation:#?}");
}

fn violations(history: &SimulatedHistory) -> Vec<Violation> {
    let operations: Vec<&Operation> = history.operations.iter().collect();
    let sightings: Vec<&Sighting> = history.sightings.iter().collect();
    check(OBJECT, &operations, &sightings)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_global_rejects: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn histories_of_a_register_have_no_violation(seed: u64, count in 1_u64..120, watched: bool) {
        let mut history = SimulatedHistory::new(seed, count);
        if !watched {
            history.sightings.clear();
        }
        let found = violations(&history);
        prop_assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn a_stale_read_is_found(seed: u64, count in 20_u64..120, which: prop::sample::Index) {
        let mut history = SimulatedHistory::new(seed, count);
        // Pairs of a read and an acknowledged write that ended before the read; the read may return the state before the write.
        let mut pairs = Vec::new();
        for (at, one) in history.operations.iter().enumerate() {
            let (Request::Read, Response::State(state)) = (&one.request, &one.response) else { continue };
            for seen in history.sightings.iter().filter(|seen| !seen.deleted && seen.revision < state.revision) {
                let over = history.operations.iter().any(|other| match &other.response {
                    Response::State(of) => {
                        other.request != Request::Read && of.revision > seen.revision && other.ended < one.begun
                    }
                    _ => false,
                });
                if over {
                    pairs.push((at, seen.state.clone()));
                }
            }
        }
        prop_assume!(!pairs.is_empty());
        let (at, stale) = pairs[which.index(pairs.len())].clone();
        history.operations[at].response = Response::State(stale);
        prop_assert!(!violations(&history).is_empty());
    }

    #[test]
    fn a_lost_acknowledged_write_is_found(seed: u64, count in 20_u64..120) {
        let mut history = SimulatedHistory::new(seed, count);
        let unknown = history.operations.iter().any(|one| {
            matches!((&one.request, &one.response), (Request::Delete(_), Response::Unknown))
        });
        let last = history.sightings.last().cloned();
        prop_assume!(!unknown && last.is_some_and(|last| !last.deleted));
        // A final read finds no object.
        let time = (count * 1_000, count * 1_000 + 1);
        history.operations.push(operation(count + 1, time, Request::Read, Response::Absent));
        prop_assert!(!violations(&history).is_empty());
    }

    #[test]
    fn an_update_with_a_violated_precondition_is_found(seed: u64, count in 20_u64..120, which: prop::sample::Index) {
        let mut history = SimulatedHistory::new(seed, count);
        let updates: Vec<usize> = (0..history.operations.len())
            .filter(|at| matches!(
                (&history.operations[*at].request, &history.operations[*at].response),
                (Request::Update(..), Response::State(_))
            ))
            .collect();
        prop_assume!(!updates.is_empty());
        if let Request::Update(expected, _) = &mut history.operations[updates[which.index(updates.len())]].request {
            *expected -= 1;
        }
        prop_assert!(!violations(&history).is_empty());
    }
}
