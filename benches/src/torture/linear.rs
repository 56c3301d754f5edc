//! Linearizability of one object: is there a moment for every operation, between its request and its response, such that
//! all of them, done one at a time in the order of these moments, give the answers that were given?
//!
//! Deciding this for any register is hard, and general checkers (Knossos, Porcupine, `stateright`) search. Here nothing has to
//! be searched for, and no crate is used, because resourceVersions claim an order of writes, and each state names its
//! writer: the claim is either consistent with time and with what the writes say, or it is wrong. So the check is linear: the
//! states form one sequence (`sequence.rs`), each has an earliest moment (its writer was sent, its predecessor was still read)
//! and a latest one (its writer was answered, it was read), and the earliest moments in a row must not pass the latest ones
//! (`windows`). It finds no fault in a history that is linearizable in the order of the revisions; of answers that name no state
//! (404, 409) it checks a necessary condition: that a state that allows them was possible in their time.

use super::history::{Operation, Request, Response, Sighting, Violation};
use super::sequence::{Bound, Sequence, Step};

/// Checks one object's history. `sightings` are what watchers saw of it.
pub(crate) fn check(object: &str, operations: &[&Operation], sightings: &[&Sighting]) -> Vec<Violation> {
    let mut sequence = match Sequence::of(object, operations, sightings) {
        Ok(sequence) => sequence,
        Err(violations) => return violations,
    };
    let mut violations = sequence.contents(object);
    read_states(&mut sequence, operations);
    match windows(object, &sequence, operations) {
        Ok(windows) => violations.extend(
            operations.iter().filter_map(|operation| stateless(object, &sequence, &windows, operation)),
        ),
        Err(violation) => violations.push(violation),
    }
    violations
}

/// Narrows the moments of states by those who read them.
fn read_states(sequence: &mut Sequence<'_>, operations: &[&Operation]) {
    for operation in operations {
        let (Request::Read, Response::State(state)) = (&operation.request, &operation.response) else {
            continue;
        };
        let Some(at) = sequence.position(state.revision) else { continue };
        sequence.steps[at].until(operation.ended, Bound::Operation(operation.id));
        if let Some(next) = sequence.steps.get_mut(at + 1) {
            next.since(operation.begun, Bound::Operation(operation.id));
        }
    }
}

/// The earliest and the latest moment at which each state can have begun.
struct Windows {
    earliest: Vec<u64>,
    latest: Vec<u64>,
}

impl Windows {
    /// Whether the state can have been there at some time between these moments.
    fn possible(&self, at: usize, begun: u64, ended: u64) -> bool {
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
            return Err(too_late(object, sequence, operations, (last.1, last.2), at));
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

/// The state `early` must not have begun before something, and `late`, which follows it, must have begun before that.
fn too_late(
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
        "not linearizable: {} began no earlier than {since} and {} no later than {until}, which was over by then, but in the \
         order of revisions the second does not come before the first",
        sequence.steps[early], sequence.steps[late]
    );
    Violation::new(object, what, involved)
}

/// Checks an answer that says only which kind of state there was.
fn stateless(
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
    let there: Vec<usize> = (0..sequence.steps.len())
        .filter(|at| windows.possible(*at, operation.begun, operation.ended))
        .collect();
    // An unseen deletion is a step of the sequence wherever it can have been; other unseen writes are not.
    let explains = |request: &Request| match operation.response {
        Response::Absent => false,
        Response::Exists => matches!(request, Request::Create(_)),
        _ => !matches!(request, Request::Delete(_)),
    };
    let is_explained =
        |at: &usize| allows(&sequence.steps[*at]) || sequence.may_hide_behind(*at, operation.ended, explains);
    if there.iter().any(is_explained) {
        return None;
    }
    let writers: Vec<u64> = there
        .iter()
        .flat_map(|at| [*at, at + 1])
        .filter_map(|at| sequence.steps.get(at)?.writer)
        .chain([operation.id])
        .collect();
    let states: Vec<String> = there.iter().map(|at| sequence.steps[*at].to_string()).collect();
    let what = format!(
        "not linearizable: operation {} was answered {:?}, but in its time there was only {}",
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
