//! Meters count the cost that is left for several evaluations, and the steps that are free for them.

use std::cell::Cell;

#[cfg(feature = "regex")]
use crate::error::EvalError;
use crate::value::Steps;

/// Cost of evaluating constants and compiling patterns for the expressions of a schema version or a policy.
///
/// 64 of the largest patterns, or about 5,000 small ones.
///
/// Limit (Expressions, cost units): the rest is computed at each evaluation.
const COMPILATION_LIMIT: u64 = 1_200_000;

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

    /// A meter for compiling the expressions of a schema or policy: for computing constants and building regular expressions.
    #[must_use]
    pub fn of_compilation() -> Self {
        Self::new(COMPILATION_LIMIT)
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

    /// Charges steps before they are taken.
    ///
    /// # Errors
    /// [`EvalError::Budget`] if less is left.
    #[cfg(feature = "regex")]
    pub(crate) fn take(&self, steps: usize) -> Result<(), EvalError> {
        let left = self.left();
        self.steps.set_limit(left);
        let taken = self.steps.take(steps);
        self.set_left(left.saturating_sub(self.steps.charge()));
        taken
    }
}
