//! Which control service to use: one that serves, of those the nearest, of those the first.
//!
//! Pure. Nearness is measured in powers of two, from some milliseconds on: noise moves nobody.

use std::time::Duration;

use super::member::State;

/// Everything that is nearer than this is as near as can be: in the same place, however busy it is there.
const NEAR: Duration = Duration::from_millis(5);

/// What is known of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) state: State,
    /// To it and back; nothing while it never answered.
    pub(super) round_trip: Option<Duration>,
}

/// The best one of these; nothing when none is better than another.
pub(super) fn best(candidates: &[Candidate]) -> Option<usize> {
    let known = candidates.iter().enumerate().filter(|(_, one)| one.state.answers());
    known
        .min_by_key(|(index, one)| (rank(one.state), distance(one.round_trip), *index))
        .map(|(index, _)| index)
}

/// Whether what is in the first state should be left for what is in the second.
pub(super) fn is_worse(first: State, second: State) -> bool {
    rank(first) > rank(second)
}

/// Whether the first is to be preferred to the second although that one serves, too.
pub(super) fn is_nearer(candidates: &[Candidate], first: usize, second: usize) -> bool {
    let place = |index: usize| (distance(candidates[index].round_trip), index);
    place(first) < place(second)
}

/// One that is about to stop is better than one that cannot answer yet.
fn rank(state: State) -> u8 {
    match state {
        State::Serving => 0,
        State::Draining => 1,
        State::NotReady => 2,
        State::Unknown | State::Foreign | State::Lost => 3,
    }
}

/// How far it is, in doublings of [`NEAR`].
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
