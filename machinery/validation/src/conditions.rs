//! Validation of lists of metav1's Condition in the status of objects.

use std::collections::HashSet;

use portico_machinery::{Cursor, names};

use super::checks::{max_bytes, unique};
use crate::Errors;

const REASON_MAX: usize = 1024;
const MESSAGE_MAX: usize = 32 * 1024;
const REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/// Validates the conditions at a cursor.
pub fn validate_conditions(conditions: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for condition in conditions.items() {
        unique(&mut seen, &condition.field("type"), errors);
        validate_condition(&condition, errors);
    }
}

fn validate_condition(condition: &Cursor<'_>, errors: &mut Errors) {
    let [kind, status, generation, time, reason, message] =
        ["type", "status", "observedGeneration", "lastTransitionTime", "reason", "message"]
            .map(|field| condition.field(field));
    errors.extend(names::to_field_errors(&kind.path(), kind.str(), names::qualified_name(kind.str())));
    if !matches!(status.str(), "True" | "False" | "Unknown") {
        errors.push(status.not_supported(&["False", "True", "Unknown"]));
    }
    if generation.i64().is_some_and(|g| g < 0) {
        errors.push(generation.invalid("must be greater than or equal to zero"));
    }
    if !time.is_present() {
        errors.push(time.required(""));
    }
    if reason.str().is_empty() {
        errors.push(reason.required(""));
    } else {
        if !is_reason(reason.str()) {
            errors.push(reason.invalid(REASON));
        }
        max_bytes(&reason, REASON_MAX, errors);
    }
    max_bytes(&message, MESSAGE_MAX, errors);
}

fn is_reason(text: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(|b| word(*b))
        && bytes.iter().all(|b| word(*b) || matches!(b, b',' | b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_identifiers() {
        assert!(is_reason("A") && is_reason("My_reason,B:c_"));
        assert!(!is_reason("") && !is_reason("1a") && !is_reason("a:") && !is_reason("a b"));
    }
}
