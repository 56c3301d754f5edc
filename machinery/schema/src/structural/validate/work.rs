//! How much work the checks of one object may be. A schema and an object are each bounded by the size of a body; what each
//! says of the other is their product: ten thousand branches of a junctor for each of a hundred thousand elements.

/// Steps to validate one custom resource against its schema.
///
/// A step visits a value, once for each branch that validates it. Real objects take a few thousand; an object of 500,000
/// values below four branches takes two million.
///
/// Limit (Definitions and schemas): 422.
pub(super) const MAX_STEPS: usize = 4_000_000;
/// How many values of an enumeration are compared in a step.
pub(super) const VALUES_PER_STEP: usize = 8;
/// How many bytes of a text are read in a step.
pub(super) const BYTES_PER_STEP: usize = 64;

/// What is left of it.
#[derive(Debug)]
pub(super) struct Work {
    left: usize,
    spent: bool,
}

impl Default for Work {
    fn default() -> Self {
        Self { left: MAX_STEPS, spent: false }
    }
}

impl Work {
    /// Takes steps; false when there are no more.
    pub(super) fn take(&mut self, steps: usize) -> bool {
        match self.left.checked_sub(steps) {
            Some(left) if !self.spent => self.left = left,
            _ => self.spent = true,
        }
        !self.spent
    }

    /// Whether more were needed than there were.
    pub(super) fn is_spent(&self) -> bool {
        self.spent
    }
}
