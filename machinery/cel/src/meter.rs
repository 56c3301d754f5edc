//! Budgets that several evaluations share.

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

/// A budget that several evaluations or compilations share. Not `Sync`: use one per thread.
///
/// kube-apiserver's costs do not cover all work. A limited amount of such work is free for each meter; more is charged.
#[derive(Clone, Debug)]
pub struct Meter {
    remaining: Cell<u64>,
    pub(crate) steps: Steps,
}

impl Meter {
    /// Returns a meter with this remaining cost.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { remaining: Cell::new(limit), steps: Steps::new(limit) }
    }

    /// Returns a meter for compiling the expressions of one schema or policy. It pays for constants and regular expressions.
    #[must_use]
    pub fn of_compilation() -> Self {
        Self::new(COMPILATION_LIMIT)
    }

    /// Returns the remaining cost.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.remaining.get()
    }

    /// Continues with the state of another meter, which started as a copy of this one.
    pub fn continue_from(&self, copy: &Self) {
        self.set_remaining(copy.remaining());
        self.steps.continue_from(&copy.steps);
    }

    /// Sets the remaining cost.
    pub fn set_remaining(&self, remaining: u64) {
        self.remaining.set(remaining);
    }

    /// Charges steps before they are taken.
    ///
    /// # Errors
    /// [`EvalError::Budget`] if less is left.
    #[cfg(feature = "regex")]
    pub(crate) fn take(&self, steps: usize) -> Result<(), EvalError> {
        let remaining = self.remaining();
        self.steps.set_limit(remaining);
        let result = self.steps.take(steps);
        self.set_remaining(remaining.saturating_sub(self.steps.charge()));
        result
    }
}
