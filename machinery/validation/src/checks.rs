//! Checks of one field that most kinds make: present, among the known, as it was. Each says upstream's words at a cursor.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use crate::Errors;

/// What upstream says of a number below zero.
pub const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
/// What upstream says of a field that may not change.
pub const IMMUTABLE: &str = "field is immutable";

/// What is wrong with a text; none when it is good.
pub type Rule = fn(&str) -> Vec<String>;

/// The text here, empty or not, follows the rule.
pub fn follows(at: &Cursor<'_>, rule: Rule, errors: &mut Errors) {
    errors.extend(names::errors(&at.path(), at.str(), rule(at.str())));
}

/// There is a text here and it follows the rule.
pub fn required(at: &Cursor<'_>, rule: Rule, errors: &mut Errors) {
    if at.str().is_empty() {
        errors.push(at.required(""));
    } else {
        follows(at, rule, errors);
    }
}

/// A text that is here follows the rule; an empty one is none.
pub fn optional(at: &Cursor<'_>, rule: Rule, errors: &mut Errors) {
    if !at.str().is_empty() {
        follows(at, rule, errors);
    }
}

/// A text that is here is one of these; absence is no error, emptiness is.
pub fn one_of(at: &Cursor<'_>, known: &[&str], errors: &mut Errors) {
    if at.is_present() && !known.contains(&at.str()) {
        errors.push(at.not_supported(known));
    }
}

/// A text that is here is one of these; absence is an error of its own.
pub fn required_one_of(at: &Cursor<'_>, known: &[&str], errors: &mut Errors) {
    if at.str().is_empty() {
        errors.push(at.required(""));
    } else {
        one_of(at, known, errors);
    }
}

/// There is something here, of whatever kind; whether there is.
pub fn not_empty(at: &Cursor<'_>, errors: &mut Errors) -> bool {
    let empty = at.opt_str().map_or_else(|| at.is_empty() && !at.is_scalar(), str::is_empty);
    if empty {
        errors.push(at.required(""));
    }
    !empty
}

/// A number that is here lies between these, both included.
pub fn between(at: &Cursor<'_>, least: i64, most: i64, text: &str, errors: &mut Errors) {
    if at.i64().is_some_and(|number| !(least..=most).contains(&number)) {
        errors.push(at.invalid(text));
    }
}

/// A number that is here is not below zero.
pub fn not_negative(at: &Cursor<'_>, errors: &mut Errors) {
    if at.i64().is_some_and(|n| n < 0) {
        errors.push(at.invalid(NOT_NEGATIVE));
    }
}

/// The same stands here as before.
pub fn unchanged<'a>(new: &Cursor<'a>, old: &Cursor<'a>, errors: &mut Errors) {
    if !same(new, old) {
        let printed = match (new.is_present(), old.opt_str()) {
            (true, _) => new.printed(),
            (false, Some(_)) => "\"\"".to_owned(),
            (false, None) => "null".to_owned(),
        };
        errors.push(Error::invalid_printed(&new.path(), &printed, IMMUTABLE));
    }
}

/// As [`unchanged`] for what is null where it is not set: a list, or what upstream points to.
pub fn unchanged_or_null<'a>(new: &Cursor<'a>, old: &Cursor<'a>, errors: &mut Errors) {
    if !same(new, old) {
        errors.push(immutable_or_null(new));
    }
}

/// What may not change has, and is null where it is not set.
#[must_use]
pub fn immutable_or_null(new: &Cursor<'_>) -> Error {
    let printed = if new.is_present() { new.printed() } else { "null".to_owned() };
    Error::invalid_printed(&new.path(), &printed, IMMUTABLE)
}

/// Whether the same stands at both places, where null, nothing and an empty collection are the same.
pub fn same<'a>(new: &Cursor<'a>, old: &Cursor<'a>) -> bool {
    let nothing = |at: &Cursor<'_>| !at.is_present();
    new.same_as(old) || (nothing(new) && nothing(old))
}

/// The text here stands nowhere else in the list.
pub fn unique<'a>(seen: &mut HashSet<&'a str>, at: &Cursor<'a>, errors: &mut Errors) {
    if !seen.insert(at.str()) {
        errors.push(Error::duplicate(&at.path(), at.str()));
    }
}

/// `TooMany` when the list is longer than this; whether its elements are worth a look.
pub fn at_most(list: &Cursor<'_>, limit: usize, errors: &mut Errors) -> bool {
    if list.len() > limit {
        errors.push(Error::too_many(&list.path(), list.len(), limit));
    }
    list.len() <= limit
}

/// `TooLong` when the text has more bytes than this.
pub fn no_longer(at: &Cursor<'_>, limit: usize, errors: &mut Errors) {
    if at.str().len() > limit {
        errors.push(Error::too_long(&at.path(), limit));
    }
}

/// `acme.io/foo`: a host and a path (`IsDomainPrefixedPath`).
pub fn domain_prefixed_path(at: &Cursor<'_>, errors: &mut Errors) {
    if at.str().is_empty() {
        return errors.push(at.required(""));
    }
    let Some((host, path)) = at.str().split_once('/').filter(|(h, p)| !h.is_empty() && !p.is_empty()) else {
        return errors.push(at.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")"));
    };
    errors.extend(names::errors(&at.path(), host, names::dns1123_subdomain(host)));
    let legal = |b: u8| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b);
    if !path.bytes().all(legal) {
        let text = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        errors.push(Error::invalid(&at.path(), path, text));
    }
}
