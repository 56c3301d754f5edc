//! Patterns must be regular expressions that run in linear time.

use super::errors::Errors;
use crate::structural::Pattern;
use crate::structural::location::Location;

pub(super) fn validate(pattern: &str, location: &Location<'_>, errors: &mut Errors) {
    if pattern.is_empty() {
        return;
    }
    if let Err(error) = Pattern::new(pattern).is_match("") {
        let text = format!("must be a valid regular expression, but isn't: {error}");
        location.invalid(pattern, &text, errors);
    }
}
