//! Checks of one field that most kinds make: presence, known values, immutability. Each adds upstream's error at a cursor.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use crate::Errors;

/// Upstream's message for a negative number.
pub const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
/// Upstream's message for a changed field that is immutable.
pub const IMMUTABLE: &str = "field is immutable";

/// Check of a text. Returns its errors; an empty list for a valid text.
pub type Rule = fn(&str) -> Vec<String>;

/// Validates the text at a cursor, even an empty one.
pub fn matches_rule(at: &Cursor<'_>, rule: Rule, errors: &mut Errors) {
    errors.extend(names::to_field_errors(&at.path(), at.str(), rule(at.str())));
}

/// Requires a text that is not empty, and validates it.
pub fn required(at: &Cursor<'_>, rule: Rule, errors: &mut Errors) {
    if at.str().is_empty() {
        errors.push(at.required(""));
    } else {
        matches_rule(at, rule, errors);
    }
}

/// Validates a text that is not empty.
pub fn optional(at: &Cursor<'_>, rule: Rule, errors: &mut Errors) {
    if !at.str().is_empty() {
        matches_rule(at, rule, errors);
    }
}

/// Requires a known value, if the field is present. An empty value is an error.
pub fn one_of(at: &Cursor<'_>, allowed: &[&str], errors: &mut Errors) {
    if at.is_present() && !allowed.contains(&at.str()) {
        errors.push(at.not_supported(allowed));
    }
}

/// Requires a known value. Reports an absent value as such.
pub fn required_one_of(at: &Cursor<'_>, allowed: &[&str], errors: &mut Errors) {
    if at.str().is_empty() {
        errors.push(at.required(""));
    } else {
        one_of(at, allowed, errors);
    }
}

/// Requires a value of any type. Returns true if there is one.
pub fn not_empty(at: &Cursor<'_>, errors: &mut Errors) -> bool {
    let empty = at.opt_str().map_or_else(|| at.is_empty() && !at.is_scalar(), str::is_empty);
    if empty {
        errors.push(at.required(""));
    }
    !empty
}

/// Requires a number between two limits, both inclusive, if the field is present.
pub fn in_range(at: &Cursor<'_>, least: i64, most: i64, text: &str, errors: &mut Errors) {
    if at.i64().is_some_and(|number| !(least..=most).contains(&number)) {
        errors.push(at.invalid(text));
    }
}

/// Requires a number that is not negative, if the field is present.
pub fn not_negative(at: &Cursor<'_>, errors: &mut Errors) {
    if at.i64().is_some_and(|n| n < 0) {
        errors.push(at.invalid(NOT_NEGATIVE));
    }
}

/// Requires that an update does not change the value.
pub fn unchanged<'a>(new: &Cursor<'a>, old: &Cursor<'a>, errors: &mut Errors) {
    if !is_same(new, old) {
        let printed = match (new.is_present(), old.opt_str()) {
            (true, _) => new.printed(),
            (false, Some(_)) => "\"\"".to_owned(),
            (false, None) => "null".to_owned(),
        };
        errors.push(Error::invalid_printed(&new.path(), &printed, IMMUTABLE));
    }
}

/// Like [`unchanged`], for fields that are null when unset: lists and pointers of upstream.
pub fn unchanged_or_null<'a>(new: &Cursor<'a>, old: &Cursor<'a>, errors: &mut Errors) {
    if !is_same(new, old) {
        errors.push(immutable_or_null(new));
    }
}

/// Returns the error for a changed immutable field that is null when unset.
#[must_use]
pub fn immutable_or_null(new: &Cursor<'_>) -> Error {
    let printed = if new.is_present() { new.printed() } else { "null".to_owned() };
    Error::invalid_printed(&new.path(), &printed, IMMUTABLE)
}

/// True if both values are the same. Null, an absent value and an empty collection are the same.
pub fn is_same<'a>(new: &Cursor<'a>, old: &Cursor<'a>) -> bool {
    let is_absent = |at: &Cursor<'_>| !at.is_present();
    new.same_as(old) || (is_absent(new) && is_absent(old))
}

/// Requires that no earlier item of the list has the text.
pub fn unique<'a>(seen: &mut HashSet<&'a str>, at: &Cursor<'a>, errors: &mut Errors) {
    if !seen.insert(at.str()) {
        errors.push(Error::duplicate(&at.path(), at.str()));
    }
}

/// Reports `TooMany` for a list with more than `limit` items. Returns false in this case: the items need no validation.
pub fn max_items(list: &Cursor<'_>, limit: usize, errors: &mut Errors) -> bool {
    if list.len() > limit {
        errors.push(Error::too_many(&list.path(), list.len(), limit));
    }
    list.len() <= limit
}

/// Reports `TooLong` for a text of more than `limit` bytes.
pub fn max_bytes(at: &Cursor<'_>, limit: usize, errors: &mut Errors) {
    if at.str().len() > limit {
        errors.push(Error::too_long(&at.path(), limit));
    }
}

/// Requires a host and a path, such as `acme.io/foo` (upstream's `IsDomainPrefixedPath`).
pub fn domain_prefixed_path(at: &Cursor<'_>, errors: &mut Errors) {
    if at.str().is_empty() {
        return errors.push(at.required(""));
    }
    let Some((host, path)) = at.str().split_once('/').filter(|(h, p)| !h.is_empty() && !p.is_empty()) else {
        return errors.push(at.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")"));
    };
    errors.extend(names::to_field_errors(&at.path(), host, names::dns1123_subdomain(host)));
    let legal = |b: u8| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b);
    if !path.bytes().all(legal) {
        let text = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        errors.push(Error::invalid(&at.path(), path, text));
    }
}
