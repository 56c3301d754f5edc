//! Limit for the work of validating one object. Schema and object are each limited by the size of a body, but the work can be
//! their product: ten thousand branches of a logical operator for each of a hundred thousand elements.

/// Steps to validate one custom resource against its schema.
///
/// A step visits a value, once for each branch that validates it. Real objects take a few thousand; an object of 500,000
/// values below four branches takes two million.
///
/// Limit (Definitions and schemas): 422.
pub(super) const MAX_STEPS: usize = 4_000_000;
/// Number of enumeration values that are compared per step.
pub(super) const VALUES_PER_STEP: usize = 8;
/// Number of bytes of a text that are read per step.
pub(super) const BYTES_PER_STEP: usize = 64;

/// Remaining steps.
#[derive(Debug)]
pub(super) struct StepBudget {
    remaining: usize,
    exceeded: bool,
}

impl Default for StepBudget {
    fn default() -> Self {
        Self { remaining: MAX_STEPS, exceeded: false }
    }
}

impl StepBudget {
    /// Takes steps. Returns false if there are not enough.
    pub(super) fn take(&mut self, steps: usize) -> bool {
        match self.remaining.checked_sub(steps) {
            Some(left) if !self.exceeded => self.remaining = left,
            _ => self.exceeded = true,
        }
        !self.exceeded
    }

    /// True if the limit was exceeded.
    pub(super) fn is_exceeded(&self) -> bool {
        self.exceeded
    }
}
