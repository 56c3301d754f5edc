//! Order in which a request tries the targets of a backend.

use super::registry::Transport;

/// Iterator over the targets in the order in which a request tries them.
pub(super) struct TargetOrder {
    turn: usize,
    skipped: usize,
    step: usize,
    /// Targets that are tried after all others: ejected ones and those with weight 0.
    deferred: Vec<usize>,
}

impl TargetOrder {
    pub(super) fn of(turn: usize, skipped: usize) -> Self {
        Self { turn, skipped, step: 0, deferred: Vec::new() }
    }

    /// Returns the next target. Its ejection is checked only when it is next, because the check may grant the caller the one
    /// probe of an ejected address.
    pub(super) fn next(&mut self, transport: &Transport) -> Option<usize> {
        let count = transport.targets.len();
        while self.step < count {
            let index = transport.rotation.target(self.turn, self.step + self.skipped, count);
            self.step += 1;
            if !transport.rotation.is_last_resort(index) && transport.targets[index].is_available() {
                return Some(index);
            }
            self.deferred.push(index);
        }
        let index = self.deferred.get(self.step - count).copied();
        self.step += 1;
        index
    }
}
