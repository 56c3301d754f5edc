//! Paths of files inside volumes and repositories: relative, and never climbing.

use portico_machinery::Cursor;
use portico_machinery::field::{Error, Path};

use crate::Errors;

const CLIMBS: &str = "must not contain '..'";

/// The path at a cursor must not climb; `path` is where the diagnostic stands.
pub fn no_climbing(at: &Cursor<'_>, path: &Path, errors: &mut Errors) {
    if climbs(at.str()) {
        errors.push(Error::invalid(path, at.str(), CLIMBS));
    }
}

/// The path at a cursor lies below something: it is relative and does not climb.
pub fn local(at: &Cursor<'_>, path: &Path, errors: &mut Errors) {
    local_text(at.str(), path, errors);
}

/// Like [`local`], for a path that is only a part of a value.
pub fn local_text(text: &str, path: &Path, errors: &mut Errors) {
    if text.starts_with('/') {
        errors.push(Error::invalid(path, text, "must be a relative path"));
    }
    if climbs(text) {
        errors.push(Error::invalid(path, text, CLIMBS));
    }
}

fn climbs(text: &str) -> bool {
    text.split('/').any(|part| part == "..")
}
