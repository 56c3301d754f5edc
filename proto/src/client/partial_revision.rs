//! Events of a revision that a watch has partially received.

use crate::objects::WatchResponse;
use crate::objects::watch_response::Step;

/// Counts the events that a resumed watch receives again, because the previous watch ended within a revision.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartialRevision {
    /// Revision before the one that was received in part.
    previous_revision: i64,
    /// Number of events received of the partial revision; 0 unless more of its events may follow.
    received: u64,
    /// Number of events still to be received again.
    to_skip: u64,
}

impl PartialRevision {
    /// Records a response. Returns false if its event was already received before the watch was resumed.
    pub fn accept(&mut self, response: &WatchResponse) -> bool {
        if matches!(response.step, Some(Step::Started(_))) {
            return true;
        }
        let is_repeated = self.to_skip > 0 && response.more && response.revision == self.previous_revision;
        if is_repeated {
            self.to_skip -= 1;
            return false;
        }
        self.to_skip = 0;
        self.received = match response.more {
            true if response.revision == self.previous_revision => self.received + 1,
            true => 1,
            false => 0,
        };
        self.previous_revision = response.revision;
        true
    }

    /// Records that the watch is resumed from the revision of the last response.
    pub fn resume(&mut self) {
        self.to_skip = self.received;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::WatchStarted;

    fn response(revision: i64, more: bool) -> WatchResponse {
        WatchResponse { revision, more, step: None }
    }

    fn accept_all<const N: usize>(partial: &mut PartialRevision, responses: [(i64, bool); N]) -> [bool; N] {
        responses.map(|(revision, more)| partial.accept(&response(revision, more)))
    }

    #[test]
    fn events_of_a_partially_received_revision_are_skipped_once() {
        let mut partial = PartialRevision::default();
        // Two events of revision 10 are received; more follow.
        assert_eq!(accept_all(&mut partial, [(9, false), (9, true), (9, true)]), [true; 3]);
        partial.resume();
        assert_eq!(accept_all(&mut partial, [(9, true)]), [false]);
        // The second watch is lost as well.
        partial.resume();
        let rest = [(9, true), (9, true), (9, true), (10, false), (10, true)];
        assert_eq!(accept_all(&mut partial, rest), [false, false, true, true, true]);
        partial.resume();
        assert_eq!(accept_all(&mut partial, [(10, true), (11, false)]), [false, true]);
    }

    #[test]
    fn the_head_of_a_resumed_watch_changes_nothing() {
        let mut partial = PartialRevision::default();
        assert_eq!(accept_all(&mut partial, [(9, true)]), [true]);
        partial.resume();
        let head = WatchResponse { step: Some(Step::Started(WatchStarted::default())), ..response(0, false) };
        assert!(partial.accept(&head));
        assert_eq!(accept_all(&mut partial, [(9, true), (9, true)]), [false, true]);
    }

    #[test]
    fn a_complete_revision_is_not_received_again_and_a_refusal_is_not_skipped() {
        let mut partial = PartialRevision::default();
        assert_eq!(accept_all(&mut partial, [(9, true), (10, false)]), [true; 2]);
        partial.resume();
        assert_eq!(accept_all(&mut partial, [(10, true)]), [true]);
        partial.resume();
        assert_eq!(accept_all(&mut partial, [(0, false), (10, true)]), [true; 2]);
    }
}
