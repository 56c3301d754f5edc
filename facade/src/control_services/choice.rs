//! Selection of the control service to use: one that serves, of those the nearest, of equally near ones the first.
//!
//! Pure functions. Distances are compared in powers of two above a minimum, so that noise does not cause a switch.

use std::time::Duration;

use super::member::State;

/// Round trip below which all control services count as equally near, because they are at the same site.
const NEAR: Duration = Duration::from_millis(5);

/// State and distance of one control service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) state: State,
    /// Round trip time; `None` if it never responded.
    pub(super) round_trip: Option<Duration>,
}

/// Returns the index of the best candidate; `None` if none of them responds.
pub(super) fn best(candidates: &[Candidate]) -> Option<usize> {
    let known = candidates.iter().enumerate().filter(|(_, one)| one.state.answers());
    known
        .min_by_key(|(index, one)| (rank(one.state), distance(one.round_trip), *index))
        .map(|(index, _)| index)
}

/// True if a control service in the second state is preferable to one in the first state.
pub(super) fn is_worse(first: State, second: State) -> bool {
    rank(first) > rank(second)
}

/// True if the first is preferred to the second although both serve.
pub(super) fn is_nearer(candidates: &[Candidate], first: usize, second: usize) -> bool {
    let place = |index: usize| (distance(candidates[index].round_trip), index);
    place(first) < place(second)
}

/// Ranks states, best first. A draining control service is preferred to one that cannot serve requests yet.
fn rank(state: State) -> u8 {
    match state {
        State::Serving => 0,
        State::Draining => 1,
        State::NotReady => 2,
        State::Unknown | State::Foreign | State::Lost => 3,
    }
}

/// Distance in doublings of [`NEAR_ROUND_TRIP`].
fn distance(round_trip: Option<Duration>) -> u32 {
    let Some(round_trip) = round_trip else { return u32::MAX };
    let times = round_trip.as_micros() / NEAR.as_micros();
    times.checked_ilog2().map_or(0, |doublings| doublings + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serving(millis: u64) -> Candidate {
        Candidate { state: State::Serving, round_trip: Some(Duration::from_millis(millis)) }
    }

    fn in_state(state: State) -> Candidate {
        Candidate { state, round_trip: Some(Duration::ZERO) }
    }

    #[test]
    fn the_nearest_that_serves_is_used_and_of_equally_near_ones_the_first() {
        assert_eq!(best(&[serving(40), serving(4), serving(0)]), Some(1));
        assert_eq!(best(&[serving(45), serving(75)]), Some(0));
        assert_eq!(best(&[in_state(State::Lost), serving(200)]), Some(1));
        assert_eq!(best(&[in_state(State::NotReady), in_state(State::Draining), serving(200)]), Some(2));
    }

    #[test]
    fn where_none_serves_one_that_answers_is_used_and_else_nobody_moves() {
        assert_eq!(best(&[in_state(State::NotReady), in_state(State::Draining)]), Some(1));
        assert_eq!(best(&[in_state(State::Lost), in_state(State::Foreign), in_state(State::Unknown)]), None);
    }

    #[test]
    fn noise_makes_nobody_nearer() {
        let two = [serving(4), serving(0)];
        assert!(is_nearer(&two, 0, 1) && !is_nearer(&two, 1, 0));
        let two = [serving(11), serving(4)];
        assert!(is_nearer(&two, 1, 0) && !is_nearer(&two, 0, 1));
    }
}
