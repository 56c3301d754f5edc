//! Validation of a path of an Ingress, which depends on the path type.

use portico_machinery::Cursor;

use super::backend;
use portico_validation::Errors;

const TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];
const FORBIDDEN_PARTS: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const FORBIDDEN_SUFFIXES: [&str; 2] = ["/..", "/."];
const NOT_ABSOLUTE: &str = "must be an absolute path";

/// Validates one path and its backend. `skip_format`: the type and format of the path are not validated.
pub(super) fn validate_path(path: &Cursor<'_>, skip_format: bool, errors: &mut Errors) {
    let kind = path.field("pathType");
    if !kind.is_present() {
        errors.push(kind.required("pathType must be specified"));
        return;
    }
    if !skip_format {
        validate_format(kind.str(), &kind, &path.field("path"), errors);
    }
    backend::validate_backend(&path.field("backend"), errors);
}

fn validate_format(value: &str, kind: &Cursor<'_>, at: &Cursor<'_>, errors: &mut Errors) {
    let text = at.str();
    match value {
        "Exact" | "Prefix" => {
            if !text.starts_with('/') {
                errors.push(at.invalid(NOT_ABSOLUTE));
            }
            for part in FORBIDDEN_PARTS.iter().filter(|part| text.contains(**part)) {
                errors.push(at.invalid(&format!("must not contain '{part}'")));
            }
            for end in FORBIDDEN_SUFFIXES.iter().filter(|end| text.ends_with(**end)) {
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
