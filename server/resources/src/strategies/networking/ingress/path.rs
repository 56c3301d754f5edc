//! A path of an Ingress: what it may contain depends on how it is matched.

use portico_machinery::Cursor;

use super::backend;
use portico_validation::Errors;

const TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];
const NOT_INSIDE: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const NOT_AT_THE_END: [&str; 2] = ["/..", "/."];
const NOT_ABSOLUTE: &str = "must be an absolute path";

/// Validates one path and its backend; `lifted`: its type and form are not looked at.
pub(super) fn path(path: &Cursor<'_>, lifted: bool, errors: &mut Errors) {
    let kind = path.field("pathType");
    if !kind.is_present() {
        errors.push(kind.required("pathType must be specified"));
        return;
    }
    if !lifted {
        form(kind.str(), &kind, &path.field("path"), errors);
    }
    backend::backend(&path.field("backend"), errors);
}

fn form(word: &str, kind: &Cursor<'_>, at: &Cursor<'_>, errors: &mut Errors) {
    let text = at.str();
    match word {
        "Exact" | "Prefix" => {
            if !text.starts_with('/') {
                errors.push(at.invalid(NOT_ABSOLUTE));
            }
            for part in NOT_INSIDE.iter().filter(|part| text.contains(**part)) {
                errors.push(at.invalid(&format!("must not contain '{part}'")));
            }
            for end in NOT_AT_THE_END.iter().filter(|end| text.ends_with(**end)) {
                errors.push(at.invalid(&format!("cannot end with '{end}'")));
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !text.starts_with('/') {
                errors.push(at.invalid(NOT_ABSOLUTE));
            }
        }
        _ => errors.push(kind.not_supported(&TYPES)),
    }
}
