//! Work on values that costs leave out: nested values compared, items copied.

use std::cell::Cell;

use crate::error::EvalError;

/// Steps of an evaluation that cost nothing.
const FREE: u64 = 100_000;
/// Number of further steps that cost a unit.
const STEPS_PER_UNIT: u64 = 4;
/// Bytes of text that are compared in one step.
const STEP_BYTES: usize = 256;
/// Bytes of a key that are hashed and compared in one step.
const STEP_KEY_BYTES: usize = 32;

/// Counts the steps of an evaluation. A value may contain another one many times: its size says little about the steps that a walk
/// through it takes, or about the memory of a copy.
#[derive(Debug)]
pub(crate) struct Steps {
    taken: Cell<u64>,
    free: Cell<u64>,
    charged: Cell<u64>,
    limit: u64,
}

impl Steps {
    /// Steps of an evaluation that may cost this much.
    pub(crate) fn new(cost_limit: u64) -> Self {
        let limit = cost_limit.saturating_mul(STEPS_PER_UNIT);
        Self { taken: Cell::new(0), free: Cell::new(FREE), charged: Cell::new(0), limit }
    }

    /// Makes steps free that are in the cost of a call or an operator.
    pub(crate) fn allow(&self, steps: u64) {
        self.free.set(self.free.get().saturating_add(steps));
    }

    /// Counts steps before they are taken.
    ///
    /// # Errors
    /// [`EvalError::Budget`] if the evaluation cannot pay for them.
    pub(crate) fn take(&self, steps: usize) -> Result<(), EvalError> {
        self.taken.set(self.taken.get().saturating_add(steps as u64));
        if self.chargeable() > self.limit { Err(EvalError::Budget) } else { Ok(()) }
    }

    /// Counts items before they are copied, at a unit each.
    ///
    /// # Errors
    /// See [`Steps::take`].
    pub(crate) fn take_items(&self, items: usize) -> Result<(), EvalError> {
        self.take(items.saturating_mul(STEPS_PER_UNIT as usize))
    }

    /// Counts the comparison, or a copy, of text of this length.
    ///
    /// # Errors
    /// See [`Steps::take`].
    pub(crate) fn take_text(&self, bytes: usize) -> Result<(), EvalError> {
        self.take(bytes / STEP_BYTES)
    }

    /// Counts the lookup of a key of this length.
    ///
    /// # Errors
    /// See [`Steps::take`].
    pub(super) fn take_key(&self, bytes: usize) -> Result<(), EvalError> {
        self.take(bytes / STEP_KEY_BYTES)
    }

    /// Returns the cost of the steps since the last call.
    pub(crate) fn charge(&self) -> u64 {
        let cost = (self.chargeable() / STEPS_PER_UNIT).max(self.charged.get());
        cost - self.charged.replace(cost)
    }

    fn chargeable(&self) -> u64 {
        self.taken.get().saturating_sub(self.free.get())
    }
}
