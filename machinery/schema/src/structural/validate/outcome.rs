//! The outcome of checking a place and what is below it. Errors are kept up to a limit; that there were more is known.

use portico_machinery::field::Error;
use portico_machinery::status::{MAX_CAUSES_BYTES, MAX_FIELD_ERRORS};

/// How much may still be reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    errors: usize,
    bytes: usize,
}

impl Budget {
    /// For a whole object.
    pub(super) fn whole() -> Self {
        Self { errors: MAX_FIELD_ERRORS + 1, bytes: MAX_CAUSES_BYTES }
    }
}

/// The outcome of checking a place.
#[derive(Debug)]
pub(super) struct Outcome {
    errors: Vec<Error>,
    budget: Budget,
    valid: bool,
    matches: usize,
    /// Whether errors may come twice.
    once: bool,
}

impl Outcome {
    /// Nothing is wrong yet. Where branches of logical operators are reported beside other errors, each is reported once.
    pub(super) fn new(budget: Budget, once: bool) -> Self {
        Self { errors: Vec::new(), budget, valid: true, matches: 0, once }
    }

    /// The budget that is left for what is below.
    pub(super) fn budget(&self) -> Budget {
        self.budget
    }

    pub(super) fn is_valid(&self) -> bool {
        self.valid
    }

    /// How many checks held: of a logical operator's branches that fail, the one with the most is reported.
    pub(super) fn matches(&self) -> usize {
        self.matches
    }

    pub(super) fn matched(&mut self, more: usize) {
        self.matches += more;
    }

    /// Whether further errors are not kept.
    pub(super) fn is_full(&self) -> bool {
        self.budget.errors == 0 || self.budget.bytes == 0
    }

    /// Something is wrong. The error is only made when there is room for it.
    pub(super) fn push(&mut self, error: impl FnOnce() -> Error) {
        self.valid = false;
        if !self.is_full() {
            self.keep(error());
        }
    }

    fn keep(&mut self, error: Error) {
        if self.once && self.errors.contains(&error) {
            return;
        }
        self.budget.errors = self.budget.errors.saturating_sub(1);
        self.budget.bytes = self.budget.bytes.saturating_sub(error.body.len() + error.path.as_str().len());
        self.errors.push(error);
    }

    /// Takes over what came out below or beside.
    pub(super) fn merge(&mut self, other: Self) {
        self.valid &= other.valid;
        self.matches += other.matches;
        if self.errors.is_empty() && !other.errors.is_empty() {
            (self.errors, self.budget) = (other.errors, other.budget);
            return;
        }
        other.errors.into_iter().for_each(|error| self.keep(error));
    }

    /// Errors go; what held remains counted.
    pub(super) fn forgive(&mut self) {
        (self.errors, self.valid) = (Vec::new(), true);
    }

    pub(super) fn into_errors(self) -> Vec<Error> {
        self.errors
    }
}
