//! Patterns must be regular expressions that run in linear time.

use super::errors::Errors;
use crate::structural::Pattern;
use crate::structural::at::At;

pub(super) fn validate(pattern: &str, at: &At<'_>, errors: &mut Errors) {
    if pattern.is_empty() {
        return;
    }
    if let Err(why) = Pattern::new(pattern).is_match("") {
        let text = format!("must be a valid regular expression, but isn't: {why}");
        at.invalid(pattern, &text, errors);
    }
}
