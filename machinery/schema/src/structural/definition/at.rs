//! Where a walk is: a path that is only printed when there is something to complain about.

use portico_machinery::field::{Error, Path};

use super::Errors;

/// A place in a schema, linked to the one above.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<'a> {
    above: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root(&'a str),
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> At<'a> {
    pub(super) fn root(path: &'a str) -> Self {
        Self { above: None, step: Step::Root(path) }
    }

    pub(super) fn field<'b>(&'b self, name: &'b str) -> At<'b> {
        At { above: Some(self), step: Step::Field(name) }
    }

    pub(super) fn key<'b>(&'b self, key: &'b str) -> At<'b> {
        At { above: Some(self), step: Step::Key(key) }
    }

    pub(super) fn index<'b>(&'b self, index: usize) -> At<'b> {
        At { above: Some(self), step: Step::Index(index) }
    }

    pub(super) fn path(&self) -> Path {
        let above = self.above.map(At::path).unwrap_or_default();
        match self.step {
            Step::Root(path) => Path::new(path),
            Step::Field(name) => above.child(name),
            Step::Key(key) => above.key(key),
            Step::Index(index) => above.index(index),
        }
    }

    pub(super) fn required(&self, detail: &str, errors: &mut Errors) {
        errors.push(Error::required(&self.path(), detail));
    }

    pub(super) fn forbidden(&self, detail: &str, errors: &mut Errors) {
        errors.push(Error::forbidden(&self.path(), detail));
    }

    pub(super) fn invalid(&self, text: &str, detail: &str, errors: &mut Errors) {
        errors.push(Error::invalid(&self.path(), text, detail));
    }

    /// As [`At::invalid`], for what is no text.
    pub(super) fn invalid_printed(&self, printed: &str, detail: &str, errors: &mut Errors) {
        errors.push(Error::invalid_printed(&self.path(), printed, detail));
    }

    pub(super) fn not_supported(&self, text: &str, known: &[&str], errors: &mut Errors) {
        errors.push(Error::not_supported(&self.path(), text, known));
    }

    /// A text that must be another, or is not there at all.
    pub(super) fn must_be(&self, text: &str, detail: &str, errors: &mut Errors) {
        if text.is_empty() { self.required(detail, errors) } else { self.invalid(text, detail, errors) }
    }
}
