//! Events of a revision that a watch has received in part.

use crate::objects::WatchResponse;
use crate::objects::watch_response::Step;

/// Counts the events that a resumed watch receives again, because the one before it ended within a revision.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartialRevision {
    /// The revision before the one that was received in part.
    before: i64,
    /// Events received of it; 0 unless more of them may follow.
    received: u64,
    /// Events still to be received again.
    repeated: u64,
}

impl PartialRevision {
    /// Notes a response; false if a response before the watch was resumed brought its event.
    pub fn take(&mut self, response: &WatchResponse) -> bool {
        if matches!(response.step, Some(Step::Started(_))) {
            return true;
        }
        let is_repeated = self.repeated > 0 && response.more && response.revision == self.before;
        if is_repeated {
            self.repeated -= 1;
            return false;
        }
        self.repeated = 0;
        self.received = match response.more {
            true if response.revision == self.before => self.received + 1,
            true => 1,
            false => 0,
        };
        self.before = response.revision;
        true
    }

    /// Notes that the watch is resumed from the revision of the last response.
    pub fn resume(&mut self) {
        self.repeated = self.received;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::WatchStarted;

    fn response(revision: i64, more: bool) -> WatchResponse {
        WatchResponse { revision, more, step: None }
    }

    fn taken<const N: usize>(partial: &mut PartialRevision, responses: [(i64, bool); N]) -> [bool; N] {
        responses.map(|(revision, more)| partial.take(&response(revision, more)))
    }

    #[test]
    fn events_of_a_revision_that_was_received_in_part_are_left_out_once() {
        let mut partial = PartialRevision::default();
        // Of revision 10 two events; more follow.
        assert_eq!(taken(&mut partial, [(9, false), (9, true), (9, true)]), [true; 3]);
        partial.resume();
        assert_eq!(taken(&mut partial, [(9, true)]), [false]);
        // The second watch is lost, too.
        partial.resume();
        let rest = [(9, true), (9, true), (9, true), (10, false), (10, true)];
        assert_eq!(taken(&mut partial, rest), [false, false, true, true, true]);
        partial.resume();
        assert_eq!(taken(&mut partial, [(10, true), (11, false)]), [false, true]);
    }

    #[test]
    fn the_head_of_a_resumed_watch_changes_nothing() {
        let mut partial = PartialRevision::default();
        assert_eq!(taken(&mut partial, [(9, true)]), [true]);
        partial.resume();
        let head = WatchResponse { step: Some(Step::Started(WatchStarted::default())), ..response(0, false) };
        assert!(partial.take(&head));
        assert_eq!(taken(&mut partial, [(9, true), (9, true)]), [false, true]);
    }

    #[test]
    fn a_whole_revision_is_not_received_again_and_a_refusal_is_not_left_out() {
        let mut partial = PartialRevision::default();
        assert_eq!(taken(&mut partial, [(9, true), (10, false)]), [true; 2]);
        partial.resume();
        assert_eq!(taken(&mut partial, [(10, true)]), [true]);
        partial.resume();
        assert_eq!(taken(&mut partial, [(0, false), (10, true)]), [true; 2]);
    }
}
