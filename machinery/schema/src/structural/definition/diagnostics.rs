//! Constructors of errors at a location of a schema.

use portico_machinery::field::Error;

use super::errors::Errors;
use crate::structural::location::Location;

impl Location<'_> {
    pub(super) fn required(&self, detail: &str, errors: &mut Errors) {
        errors.push_with(|| Error::required(&self.path(), detail));
    }

    pub(super) fn forbidden(&self, detail: &str, errors: &mut Errors) {
        errors.push_with(|| Error::forbidden(&self.path(), detail));
    }

    pub(super) fn invalid(&self, text: &str, detail: &str, errors: &mut Errors) {
        errors.push_with(|| Error::invalid(&self.path(), text, detail));
    }

    /// Adds the error [`Location::invalid`] for a value that is not a string.
    pub(super) fn invalid_printed(&self, printed: &str, detail: &str, errors: &mut Errors) {
        errors.push_with(|| Error::invalid_printed(&self.path(), printed, detail));
    }

    pub(super) fn not_supported(&self, text: &str, supported: &[&str], errors: &mut Errors) {
        errors.push_with(|| Error::not_supported(&self.path(), text, supported));
    }

    /// Adds an error for a string that must have another value, or is missing.
    pub(super) fn must_be(&self, text: &str, detail: &str, errors: &mut Errors) {
        if text.is_empty() { self.required(detail, errors) } else { self.invalid(text, detail, errors) }
    }
}
