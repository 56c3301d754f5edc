//! Work on values that costs do not cover: comparing nested values, copying items, reading text.

use std::cell::Cell;

use crate::error::EvalError;

/// Values compared, copied or read by all expressions for one request before they count toward the cost.
///
/// Limit (Expressions): further values count.
const FREE_STEPS: i64 = 5_000;
/// Such values included in each unit of cost.
///
/// Limit (Expressions): further values count.
const STEPS_IN_COST: u64 = 10;
/// Further such values that cost one unit.
///
/// Limit (Expressions): the units count toward the cost of the expression.
const STEPS_PER_UNIT: u64 = 4;
/// Bytes of text that are compared or copied in one step.
const STEP_BYTES: usize = 256;
/// Bytes of a key that are hashed and compared in one step.
const STEP_KEY_BYTES: usize = 32;
/// Bytes of text that are parsed in one step.
const STEP_PARSE_BYTES: usize = 10;

/// Counts the steps of evaluations. A value may contain another one many times: its size says little about the steps that a walk
/// through it takes, or about the memory of a copy.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    /// Steps that may still be taken without a charge. If negative, steps that were taken and are not charged yet.
    balance: Cell<i64>,
    /// Maximum number of uncharged steps.
    limit: Cell<i64>,
}

impl Steps {
    /// Creates the counter of evaluations with this total cost limit.
    pub(crate) fn new(cost_limit: u64) -> Self {
        let steps = Self { balance: Cell::new(FREE_STEPS), limit: Cell::new(0) };
        steps.set_limit(cost_limit);
        steps
    }

    /// Sets the limit for uncharged steps.
    pub(crate) fn set_limit(&self, cost: u64) {
        self.limit.set(signed(cost.saturating_mul(STEPS_PER_UNIT)));
    }

    /// Continues with the balance of a copy, with the current limit.
    pub(crate) fn continue_from(&self, copy: &Self) {
        self.balance.set(copy.balance.get());
    }

    /// Adds the free steps that a cost includes.
    pub(crate) fn allow(&self, cost: u64) {
        self.add(signed(cost.saturating_mul(STEPS_IN_COST)));
    }

    /// Counts steps before they are taken.
    ///
    /// # Errors
    /// [`EvalError::Budget`] if the evaluation cannot pay for them.
    pub(crate) fn take(&self, steps: usize) -> Result<(), EvalError> {
        self.add(-signed(steps as u64));
        if self.uncharged_steps() > self.limit.get() { Err(EvalError::Budget) } else { Ok(()) }
    }

    /// Counts items before they are copied, at one unit each.
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

    /// Counts parsing or writing text of this length character by character.
    ///
    /// # Errors
    /// See [`Steps::take`].
    pub(crate) fn take_parse(&self, bytes: usize) -> Result<(), EvalError> {
        self.take(bytes / STEP_PARSE_BYTES)
    }

    /// Returns the cost of the steps that were not charged yet.
    pub(crate) fn charge(&self) -> u64 {
        let cost = self.uncharged_steps().unsigned_abs() / STEPS_PER_UNIT;
        self.add(signed(cost * STEPS_PER_UNIT));
        cost
    }

    fn uncharged_steps(&self) -> i64 {
        self.balance.get().min(0).saturating_neg()
    }

    fn add(&self, steps: i64) {
        self.balance.set(self.balance.get().saturating_add(steps));
    }
}

fn signed(steps: u64) -> i64 {
    i64::try_from(steps).unwrap_or(i64::MAX)
}
