//! Order in which a request tries the targets of a backend.

use super::registry::Transport;

/// Iterator over the targets in the order in which a request tries them.
pub(super) struct Order {
    turn: usize,
    passed: usize,
    step: usize,
    /// Targets that are tried after all others: ejected ones and those with weight 0.
    last: Vec<usize>,
}

impl Order {
    pub(super) fn of(turn: usize, passed: usize) -> Self {
        Self { turn, passed, step: 0, last: Vec::new() }
    }

    /// Returns the next target. Its ejection is checked only when it is next, because the check may grant the caller the one
    /// probe of an ejected address.
    pub(super) fn next(&mut self, transport: &Transport) -> Option<usize> {
        let count = transport.targets.len();
        while self.step < count {
            let index = transport.turns.target(self.turn, self.step + self.passed, count);
            self.step += 1;
            if !transport.turns.is_last_resort(index) && transport.targets[index].is_in() {
                return Some(index);
            }
            self.last.push(index);
        }
        let index = self.last.get(self.step - count).copied();
        self.step += 1;
        index
    }
}
