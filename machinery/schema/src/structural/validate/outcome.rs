//! Outcome of validating a value and everything below it. Errors are stored up to a limit; further errors only make the value
//! invalid, without being stored.

use portico_machinery::field::Error;
use portico_machinery::status::{MAX_CAUSES_BYTES, MAX_FIELD_ERRORS};

/// Number and bytes of errors that can still be stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct ErrorBudget {
    errors: usize,
    bytes: usize,
}

impl ErrorBudget {
    /// Returns the budget of a whole object.
    pub(super) fn for_object() -> Self {
        Self { errors: MAX_FIELD_ERRORS + 1, bytes: MAX_CAUSES_BYTES }
    }
}

/// Outcome of validating a value.
#[derive(Debug)]
pub(super) struct Outcome {
    errors: Vec<Error>,
    budget: ErrorBudget,
    valid: bool,
    matches: usize,
    /// True if equal errors are stored once.
    deduplicates: bool,
}

impl Outcome {
    /// Creates a valid outcome. With `deduplicates`, for values with logical operators, equal errors of branches are stored once.
    pub(super) fn new(budget: ErrorBudget, deduplicates: bool) -> Self {
        Self { errors: Vec::new(), budget, valid: true, matches: 0, deduplicates }
    }

    /// Returns the remaining budget for nested values.
    pub(super) fn budget(&self) -> ErrorBudget {
        self.budget
    }

    pub(super) fn is_valid(&self) -> bool {
        self.valid
    }

    /// Returns the number of successful checks: the failed branch of a logical operator with the most is reported.
    pub(super) fn matches(&self) -> usize {
        self.matches
    }

    pub(super) fn add_matches(&mut self, more: usize) {
        self.matches += more;
    }

    /// True if further errors are not stored.
    pub(super) fn is_full(&self) -> bool {
        self.budget.errors == 0 || self.budget.bytes == 0
    }

    /// Marks the value as invalid. The error is only created if there is room for it.
    pub(super) fn push(&mut self, error: impl FnOnce() -> Error) {
        self.valid = false;
        if !self.is_full() {
            self.store(error());
        }
    }

    fn store(&mut self, error: Error) {
        if self.deduplicates && self.errors.contains(&error) {
            return;
        }
        self.budget.errors = self.budget.errors.saturating_sub(1);
        self.budget.bytes = self.budget.bytes.saturating_sub(error.body.len() + error.path.as_str().len());
        self.errors.push(error);
    }

    /// Adds the outcome of a nested value or of another check.
    pub(super) fn merge(&mut self, other: Self) {
        self.valid &= other.valid;
        self.matches += other.matches;
        if self.errors.is_empty() && !other.errors.is_empty() {
            (self.errors, self.budget) = (other.errors, other.budget);
            return;
        }
        other.errors.into_iter().for_each(|error| self.store(error));
    }

    /// Drops the errors. The number of successful checks is kept.
    pub(super) fn drop_errors(&mut self) {
        (self.errors, self.valid) = (Vec::new(), true);
    }

    pub(super) fn into_errors(self) -> Vec<Error> {
        self.errors
    }
}
