//! Paths of files inside volumes and repositories: relative, and never climbing.

use portico_machinery::Cursor;
use portico_machinery::field::{Error, Path};

use crate::Errors;

/// The path at a cursor must not climb; `path` is where the diagnostic stands.
pub fn no_climbing(at: &Cursor<'_>, path: &Path, errors: &mut Errors) {
    if at.str().split('/').any(|part| part == "..") {
        errors.push(Error::invalid(path, at.str(), "must not contain '..'"));
    }
}

/// The path at a cursor lies below something: it is relative and does not climb.
pub fn local(at: &Cursor<'_>, path: &Path, errors: &mut Errors) {
    if at.str().starts_with('/') {
        errors.push(Error::invalid(path, at.str(), "must be a relative path"));
    }
    no_climbing(at, path, errors);
}
