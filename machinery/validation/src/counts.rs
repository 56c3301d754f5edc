//! Validation of counts and percentages: numbers that are not negative, and fields with a number or a percentage.

use portico_machinery::Cursor;
use portico_machinery::field::Error;

use super::checks::not_negative;
use crate::Errors;

const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/// Requires that the fields are not negative. Reports errors in the order of `fields`.
pub fn all_not_negative(parent: &Cursor<'_>, fields: &[&str], errors: &mut Errors) {
    for field in fields {
        not_negative(&parent.field(field), errors);
    }
}

/// Requires that an update does not decrease a number, such as a collision count.
pub fn not_decremented(new: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    if let Some(before) = old.i64() {
        let now = new.i64().unwrap_or(0);
        if now < before {
            errors.push(Error::invalid(&new.path(), now, "cannot be decremented"));
        }
    }
}

/// Requires a number or percentage that is not negative.
pub fn int_or_percent(value: &Cursor<'_>, errors: &mut Errors) {
    match value.opt_str() {
        Some(text) if percent_digits(text).is_none() => errors.push(value.invalid(PERCENT)),
        Some(_) => {}
        None => not_negative(value, errors),
    }
}

/// Requires that a percentage is at most 100 %.
pub fn at_most_100_percent(value: &Cursor<'_>, errors: &mut Errors) {
    let share = value.opt_str().and_then(percent_digits);
    if share.is_some_and(|share| share.parse::<i64>().is_ok_and(|share| share > 100)) {
        errors.push(value.invalid("must not be greater than 100%"));
    }
}

/// True if a number or percentage is zero. Other values count as zero.
pub fn is_zero(value: &Cursor<'_>) -> bool {
    match value.opt_str() {
        Some(text) => percent_digits(text).and_then(|share| share.parse::<i64>().ok()).unwrap_or(0) == 0,
        None => value.i64().unwrap_or(0) == 0,
    }
}

/// Returns the digits of a percentage; `None` for any other text.
fn percent_digits(text: &str) -> Option<&str> {
    let digits = text.strip_suffix('%')?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some(digits)
}

/// Requires that a count does not exceed another; `words` is the message of the error.
pub fn not_greater_than(part: &Cursor<'_>, whole: &Cursor<'_>, words: &str, errors: &mut Errors) {
    let count = part.i64().unwrap_or(0);
    if count > whole.i64().unwrap_or(0) {
        errors.push(Error::invalid(&part.path(), count, words));
    }
}

#[cfg(test)]
mod tests {
    use portico_machinery::Object;

    use super::*;

    #[test]
    fn shares_are_numbers_or_percentages() {
        let rows = [
            ("1", 0, false),
            ("-1", 1, false),
            ("\"50%\"", 0, false),
            ("\"5\"", 1, true),
            ("\"0%\"", 0, true),
        ];
        for (json, faults, none) in rows {
            let object = Object::from_json(format!(r#"{{"v":{json}}}"#).as_bytes()).unwrap();
            let mut errors = Vec::new();
            int_or_percent(&object.at(&["v"]), &mut errors);
            assert_eq!((errors.len(), is_zero(&object.at(&["v"]))), (faults, none), "{json}");
        }
    }

    #[test]
    fn percentages_above_100_are_refused() {
        for (json, faults) in [("\"100%\"", 0), ("\"101%\"", 1), ("200", 0), ("\"x%\"", 0)] {
            let object = Object::from_json(format!(r#"{{"v":{json}}}"#).as_bytes()).unwrap();
            let mut errors = Vec::new();
            at_most_100_percent(&object.at(&["v"]), &mut errors);
            assert_eq!(errors.len(), faults, "{json}");
        }
    }
}
