//! Validation of file paths inside volumes and repositories: relative, without `..`.

use portico_machinery::Cursor;
use portico_machinery::field::{Error, Path};

use crate::Errors;

const PARENT_REFERENCE: &str = "must not contain '..'";

/// Requires a path without `..`; errors have the field path `path`.
pub fn no_parent_reference(at: &Cursor<'_>, path: &Path, errors: &mut Errors) {
    if has_parent_reference(at.str()) {
        errors.push(Error::invalid(path, at.str(), PARENT_REFERENCE));
    }
}

/// Requires a relative path without `..`.
pub fn relative(at: &Cursor<'_>, path: &Path, errors: &mut Errors) {
    relative_text(at.str(), path, errors);
}

/// Like [`relative`], for a path that is only a part of a value.
pub fn relative_text(text: &str, path: &Path, errors: &mut Errors) {
    if text.starts_with('/') {
        errors.push(Error::invalid(path, text, "must be a relative path"));
    }
    if has_parent_reference(text) {
        errors.push(Error::invalid(path, text, PARENT_REFERENCE));
    }
}

fn has_parent_reference(text: &str) -> bool {
    text.split('/').any(|part| part == "..")
}
