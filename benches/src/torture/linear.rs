//! Linearizability of one object: is there a point in time for every operation, between its request and its response, such that
//! executing all operations one at a time in the order of these points yields the same responses?
//!
//! Deciding this for any register is hard, and general checkers (Knossos, Porcupine, `stateright`) search. No search and no crate
//! are needed here, because resourceVersions claim an order of writes, and each state names its writer: the claim is either
//! consistent with the times and contents of the writes, or it is wrong. The check therefore takes linear time: the states form
//! one sequence (`sequence.rs`), each has an earliest start (its writer was sent, its predecessor was still read) and a latest
//! start (its writer got a response, it was read), and no earliest start may be after the latest start of a later state
//! (`windows`). A history that is linearizable in the order of the revisions has no violation. For responses without a state
//! (404, 409), the check is a necessary condition: that a state which allows the response was possible
//! between request and response.

use super::history::{Operation, Request, Response, Sighting, Violation};
use super::sequence::{Bound, Sequence, Step};

/// Checks one object's history. `sightings` are the states that watchers received.
pub(crate) fn check(object: &str, operations: &[&Operation], sightings: &[&Sighting]) -> Vec<Violation> {
    let mut sequence = match Sequence::of(object, operations, sightings) {
        Ok(sequence) => sequence,
        Err(violations) => return violations,
    };
    let mut violations = sequence.check_contents(object);
    apply_reads(&mut sequence, operations);
    match windows(object, &sequence, operations) {
        Ok(windows) => violations.extend(
            operations.iter().filter_map(|operation| check_stateless(object, &sequence, &windows, operation)),
        ),
        Err(violation) => violations.push(violation),
    }
    violations
}

/// Narrows the windows of states by their reads.
fn apply_reads(sequence: &mut Sequence<'_>, operations: &[&Operation]) {
    for operation in operations {
        let (Request::Read, Response::State(state)) = (&operation.request, &operation.response) else {
            continue;
        };
        let Some(at) = sequence.position(state.revision) else { continue };
        sequence.steps[at].not_after(operation.ended, Bound::Operation(operation.id));
        if let Some(next) = sequence.steps.get_mut(at + 1) {
            next.not_before(operation.begun, Bound::Operation(operation.id));
        }
    }
}

/// Earliest and latest possible start of each state.
struct Windows {
    earliest: Vec<u64>,
    latest: Vec<u64>,
}

impl Windows {
    /// Returns true if the state can have existed at some time between these times.
    fn is_possible(&self, at: usize, begun: u64, ended: u64) -> bool {
        self.earliest[at] <= ended && self.latest.get(at + 1).is_none_or(|end| *end >= begun)
    }
}

fn windows(object: &str, sequence: &Sequence<'_>, operations: &[&Operation]) -> Result<Windows, Violation> {
    let mut earliest = Vec::with_capacity(sequence.steps.len());
    let mut last = (0, Bound::Start, 0);
    for (at, step) in sequence.steps.iter().enumerate() {
        if step.earliest.0 > last.0 {
            last = (step.earliest.0, step.earliest.1, at);
        }
        if last.0 > step.latest.0 {
            return Err(order_violation(object, sequence, operations, (last.1, last.2), at));
        }
        earliest.push(last.0);
    }
    let mut latest = vec![u64::MAX; sequence.steps.len()];
    let mut next = u64::MAX;
    for (at, step) in sequence.steps.iter().enumerate().rev() {
        next = next.min(step.latest.0);
        latest[at] = next;
    }
    Ok(Windows { earliest, latest })
}

/// Returns the violation that state `early` cannot have started before `since`, while its successor `late` must have.
fn order_violation(
    object: &str,
    sequence: &Sequence<'_>,
    operations: &[&Operation],
    (since, early): (Bound, usize),
    late: usize,
) -> Violation {
    let until = sequence.steps[late].latest.1;
    let ids = [since.id(), until.id(), sequence.steps[early].writer, sequence.steps[late].writer];
    let involved = operations.iter().copied().filter(|operation| ids.contains(&Some(operation.id)));
    let what = format!(
        "not linearizable: {} began no earlier than {since}, after {} began no later than {until}, but the revisions have the \
         opposite order",
        sequence.steps[early], sequence.steps[late]
    );
    Violation::new(object, what, involved)
}

/// Checks a response without a state.
fn check_stateless(
    object: &str,
    sequence: &Sequence<'_>,
    windows: &Windows,
    operation: &Operation,
) -> Option<Violation> {
    let allows: &dyn Fn(&Step<'_>) -> bool = match (&operation.request, &operation.response) {
        (_, Response::Absent) => &|step| step.state.is_none(),
        (Request::Create(_), Response::Exists) => &|step| step.state.is_some(),
        (Request::Update(expected, _), Response::Conflict) => {
            &move |step| step.state.is_some_and(|state| state.revision != *expected)
        }
        (Request::Delete(Some(uid)), Response::Conflict) => {
            &move |step| step.state.is_some_and(|state| state.uid != *uid)
        }
        _ => return None,
    };
    let possible: Vec<usize> = (0..sequence.steps.len())
        .filter(|at| windows.is_possible(*at, operation.begun, operation.ended))
        .collect();
    // An unseen deletion is a step of the sequence wherever it is possible; other unseen writes are not.
    let explains = |request: &Request| match operation.response {
        Response::Absent => false,
        Response::Exists => matches!(request, Request::Create(_)),
        _ => !matches!(request, Request::Delete(_)),
    };
    let is_explained =
        |at: &usize| allows(&sequence.steps[*at]) || sequence.may_hide_after(*at, operation.ended, explains);
    if possible.iter().any(is_explained) {
        return None;
    }
    let writers: Vec<u64> = possible
        .iter()
        .flat_map(|at| [*at, at + 1])
        .filter_map(|at| sequence.steps.get(at)?.writer)
        .chain([operation.id])
        .collect();
    let states: Vec<String> = possible.iter().map(|at| sequence.steps[*at].to_string()).collect();
    let what = format!(
        "not linearizable: operation {} got the response {:?}, but the only states during it were {}",
        operation.id,
        operation.response,
        states.join(", ")
    );
    let involved = sequence.operations().filter(|operation| writers.contains(&operation.id));
    Some(Violation::new(object, what, involved))
}

#[cfg(test)]
#[path = "linear_tests.rs"]
mod tests;
