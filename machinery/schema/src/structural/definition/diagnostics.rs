//! What is complained of at a place of a schema.

use portico_machinery::field::Error;

use super::errors::Errors;
use crate::structural::at::At;

impl At<'_> {
    pub(super) fn required(&self, detail: &str, errors: &mut Errors) {
        errors.push_with(|| Error::required(&self.path(), detail));
    }

    pub(super) fn forbidden(&self, detail: &str, errors: &mut Errors) {
        errors.push_with(|| Error::forbidden(&self.path(), detail));
    }

    pub(super) fn invalid(&self, text: &str, detail: &str, errors: &mut Errors) {
        errors.push_with(|| Error::invalid(&self.path(), text, detail));
    }

    /// As [`At::invalid`], for what is no text.
    pub(super) fn invalid_printed(&self, printed: &str, detail: &str, errors: &mut Errors) {
        errors.push_with(|| Error::invalid_printed(&self.path(), printed, detail));
    }

    pub(super) fn not_supported(&self, text: &str, known: &[&str], errors: &mut Errors) {
        errors.push_with(|| Error::not_supported(&self.path(), text, known));
    }

    /// A text that must be another, or is not there at all.
    pub(super) fn must_be(&self, text: &str, detail: &str, errors: &mut Errors) {
        if text.is_empty() { self.required(detail, errors) } else { self.invalid(text, detail, errors) }
    }
}
