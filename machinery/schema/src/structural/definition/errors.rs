//! List of errors of a schema, with a limit.

use portico_machinery::Bounded;
use portico_machinery::field::Error;
use portico_machinery::status::{MAX_CAUSES_BYTES, MAX_FIELD_ERRORS};

/// Maximum number of errors that are collected for one schema: enough to report the first thousand in order.
pub(super) const MAX_ERRORS: usize = 10 * MAX_FIELD_ERRORS;

/// Maximum bytes of the collected errors.
const MAX_ERRORS_BYTES: usize = 4 * MAX_CAUSES_BYTES;

/// List of errors with a limit.
pub(super) struct Errors(pub(super) Bounded<Error>);

impl Default for Errors {
    fn default() -> Self {
        Self(Bounded::new(MAX_ERRORS, MAX_ERRORS_BYTES))
    }
}

impl Errors {
    pub(super) fn push_with(&mut self, error: impl FnOnce() -> Error) {
        self.0.push_with(error);
    }

    pub(super) fn len(&self) -> usize {
        self.0.items().len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.items().is_empty()
    }
}
