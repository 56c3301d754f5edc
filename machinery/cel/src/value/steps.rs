//! Work on values that costs leave out: nested values compared, items copied, texts read.

use std::cell::Cell;

use crate::error::EvalError;

/// Steps of an evaluation that cost nothing.
const FREE: u64 = 5_000;
/// Steps that each unit of cost stands for.
const STEPS_IN_COST: u64 = 10;
/// Number of further steps that cost a unit.
const STEPS_PER_UNIT: u64 = 4;
/// Bytes of text that are compared or copied in one step.
const STEP_BYTES: usize = 256;
/// Bytes of a key that are hashed and compared in one step.
const STEP_KEY_BYTES: usize = 32;
/// Bytes of text that are parsed in one step.
const STEP_PARSE_BYTES: usize = 10;

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

    /// Makes the steps free that a cost stands for.
    pub(crate) fn allow(&self, cost: u64) {
        self.free.set(self.free.get().saturating_add(cost.saturating_mul(STEPS_IN_COST)));
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
    pub(crate) fn take_key(&self, bytes: usize) -> Result<(), EvalError> {
        self.take(bytes / STEP_KEY_BYTES)
    }

    /// Counts parsing, or writing, of text of this length character by character.
    ///
    /// # Errors
    /// See [`Steps::take`].
    pub(crate) fn take_parse(&self, bytes: usize) -> Result<(), EvalError> {
        self.take(bytes / STEP_PARSE_BYTES)
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
