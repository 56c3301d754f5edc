//! What several evaluations share: the cost that is left, and the steps that cost nothing.

use std::cell::Cell;

use crate::value::Steps;

/// Counts what several evaluations cost together. Some work that upstream's costs leave out is free: once for each meter, however
/// many evaluations share it.
#[derive(Clone, Debug)]
pub struct Meter {
    left: Cell<u64>,
    pub(crate) steps: Steps,
}

impl Meter {
    /// A meter with this cost left.
    #[must_use]
    pub fn new(left: u64) -> Self {
        Self { left: Cell::new(left), steps: Steps::new(left) }
    }

    /// Returns the cost that is left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Continues where another meter, a copy of this one, has arrived.
    pub fn continue_from(&self, copy: &Self) {
        self.set_left(copy.left());
        self.steps.continue_from(&copy.steps);
    }

    /// Changes the cost that is left.
    pub fn set_left(&self, left: u64) {
        self.left.set(left);
    }
}
