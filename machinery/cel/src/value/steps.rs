//! Work on values that costs leave out: nested values compared, items copied.

use std::cell::Cell;

use crate::error::EvalError;

/// Steps of an evaluation that cost nothing; each further one costs a unit.
const FREE: u64 = 100_000;
/// Bytes of text that are compared in one step.
const STEP_BYTES: usize = 256;

/// Counts the steps of an evaluation. A value may contain another one many times: its size says little about the steps that a walk
/// through it takes, or about the memory of a copy.
#[derive(Debug)]
pub(crate) struct Steps {
    taken: Cell<u64>,
    charged: Cell<u64>,
    limit: u64,
}

impl Steps {
    /// Steps of an evaluation that may cost this much.
    pub(crate) fn new(limit: u64) -> Self {
        Self { taken: Cell::new(0), charged: Cell::new(0), limit: limit.saturating_add(FREE) }
    }

    /// Counts steps before they are taken.
    ///
    /// # Errors
    /// [`EvalError::Budget`] if the evaluation cannot pay for them.
    pub(crate) fn take(&self, steps: usize) -> Result<(), EvalError> {
        let taken = self.taken.get().saturating_add(steps as u64);
        self.taken.set(taken);
        if taken > self.limit { Err(EvalError::Budget) } else { Ok(()) }
    }

    /// Counts the comparison of texts of this length.
    ///
    /// # Errors
    /// As [`Steps::take`].
    pub(super) fn take_text(&self, bytes: usize) -> Result<(), EvalError> {
        self.take(bytes / STEP_BYTES)
    }

    /// Returns the cost of the steps since the last call.
    pub(crate) fn charge(&self) -> u64 {
        let cost = self.taken.get().saturating_sub(FREE);
        cost.saturating_sub(self.charged.replace(cost))
    }
}
