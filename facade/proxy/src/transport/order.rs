//! In which order the targets of a backend are tried.

use super::registry::Transport;

/// The targets in the order in which a request tries them.
pub(super) struct Order {
    turn: usize,
    passed: usize,
    step: usize,
    /// Those that are tried when no other has taken the request.
    last: Vec<usize>,
}

impl Order {
    pub(super) fn of(turn: usize, passed: usize) -> Self {
        Self { turn, passed, step: 0, last: Vec::new() }
    }

    /// The next one. Whether it is left out is asked when its turn has come: only who asks may then try whether it is back.
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
