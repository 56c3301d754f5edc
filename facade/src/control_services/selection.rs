//! Selection of the control service to use: one that serves, of those the nearest, of equally near ones the first.
//!
//! Pure functions. Distances are compared in powers of two above a minimum, so that noise does not cause a switch.

use std::time::Duration;

use super::member::MemberState;

/// Round trip below which all control services count as equally near, because they are at the same site.
const NEAR_ROUND_TRIP: Duration = Duration::from_millis(5);

/// State and distance of one control service.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberStatus {
    pub(super) state: MemberState,
    /// Round trip time; `None` if it never responded.
    pub(super) round_trip: Option<Duration>,
}

/// Returns the index of the best candidate; `None` if none of them responds.
pub(super) fn best(candidates: &[MemberStatus]) -> Option<usize> {
    let responding = candidates.iter().enumerate().filter(|(_, status)| status.state.responds());
    responding
        .min_by_key(|(index, status)| (rank(status.state), distance(status.round_trip), *index))
        .map(|(index, _)| index)
}

/// True if a control service in the second state is preferable to one in the first state.
pub(super) fn is_worse(first: MemberState, second: MemberState) -> bool {
    rank(first) > rank(second)
}

/// True if the first is preferred to the second although both serve.
pub(super) fn is_nearer(candidates: &[MemberStatus], first: usize, second: usize) -> bool {
    let order_key = |index: usize| (distance(candidates[index].round_trip), index);
    order_key(first) < order_key(second)
}

/// Ranks states, best first. A draining control service is preferred to one that cannot serve requests yet.
fn rank(state: MemberState) -> u8 {
    match state {
        MemberState::Serving => 0,
        MemberState::Draining => 1,
        MemberState::NotReady => 2,
        MemberState::Unknown | MemberState::OtherStore | MemberState::Lost => 3,
    }
}

/// Distance in doublings of [`NEAR_ROUND_TRIP`].
fn distance(round_trip: Option<Duration>) -> u32 {
    let Some(round_trip) = round_trip else { return u32::MAX };
    let times = round_trip.as_micros() / NEAR_ROUND_TRIP.as_micros();
    times.checked_ilog2().map_or(0, |doublings| doublings + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serving(millis: u64) -> MemberStatus {
        MemberStatus { state: MemberState::Serving, round_trip: Some(Duration::from_millis(millis)) }
    }

    fn in_state(state: MemberState) -> MemberStatus {
        MemberStatus { state, round_trip: Some(Duration::ZERO) }
    }

    #[test]
    fn the_nearest_serving_candidate_is_best_and_the_first_of_equally_near_ones() {
        assert_eq!(best(&[serving(40), serving(4), serving(0)]), Some(1));
        assert_eq!(best(&[serving(45), serving(75)]), Some(0));
        assert_eq!(best(&[in_state(MemberState::Lost), serving(200)]), Some(1));
        assert_eq!(
            best(&[in_state(MemberState::NotReady), in_state(MemberState::Draining), serving(200)]),
            Some(2)
        );
    }

    #[test]
    fn without_a_serving_candidate_a_responding_one_is_best() {
        assert_eq!(best(&[in_state(MemberState::NotReady), in_state(MemberState::Draining)]), Some(1));
        assert_eq!(
            best(&[
                in_state(MemberState::Lost),
                in_state(MemberState::OtherStore),
                in_state(MemberState::Unknown)
            ]),
            None
        );
    }

    #[test]
    fn noise_does_not_change_the_distance() {
        let candidates = [serving(4), serving(0)];
        assert!(is_nearer(&candidates, 0, 1) && !is_nearer(&candidates, 1, 0));
        let candidates = [serving(11), serving(4)];
        assert!(is_nearer(&candidates, 1, 0) && !is_nearer(&candidates, 0, 1));
    }
}
