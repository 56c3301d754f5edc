//! Strings: borrowed from JSON, or shared.

use std::ops::Deref;
use std::sync::Arc;

/// A string that is cheap to clone.
#[derive(Clone, Debug)]
pub enum Text<'v> {
    /// Borrowed from JSON.
    Borrowed(&'v str),
    /// Computed, or a constant of the program.
    Shared(Arc<str>),
}

impl Text<'_> {
    /// Returns the number of code points, which is the size of a string in CEL.
    #[must_use]
    pub fn characters(&self) -> u64 {
        if self.is_ascii() { self.len() as u64 } else { self.chars().count() as u64 }
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text<'_> {}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self::Shared(text.into())
    }
}
