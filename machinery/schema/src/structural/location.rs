//! Location of a walk: a linked path that is only formatted when there is something to report.

use std::fmt::Write as _;

use portico_machinery::field::Path;

/// Location in a schema or an object, linked to its parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location<'a> {
    parent: Option<&'a Location<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root(&'a str),
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Location<'a> {
    /// Creates a root location with this path.
    pub(super) fn root(path: &'a str) -> Self {
        Self { parent: None, step: Step::Root(path) }
    }

    pub(super) fn field<'b>(&'b self, name: &'b str) -> Location<'b> {
        Location { parent: Some(self), step: Step::Field(name) }
    }

    pub(super) fn key<'b>(&'b self, key: &'b str) -> Location<'b> {
        Location { parent: Some(self), step: Step::Key(key) }
    }

    pub(super) fn index<'b>(&'b self, index: usize) -> Location<'b> {
        Location { parent: Some(self), step: Step::Index(index) }
    }

    pub(super) fn path(&self) -> Path {
        let mut text = String::new();
        self.write_to(&mut text);
        Path::new(text)
    }

    /// Appends the path to a text, each step once because names may be long.
    fn write_to(&self, text: &mut String) {
        if let Some(parent) = self.parent {
            parent.write_to(text);
        }
        match self.step {
            Step::Root(path) => text.push_str(path),
            Step::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Step::Key(key) => text.extend(["[", key, "]"]),
            Step::Index(index) => {
                // Writing to a string cannot fail.
                let _ = write!(text, "[{index}]");
            }
        }
    }
}
