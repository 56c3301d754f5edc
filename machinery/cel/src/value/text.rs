//! Text: looked at in somebody's JSON, or shared.

use std::ops::Deref;
use std::sync::Arc;

/// Text that is cheap to clone.
#[derive(Clone, Debug)]
pub enum Text<'v> {
    /// Somebody else's.
    Borrowed(&'v str),
    /// Computed, or a constant of the program.
    Shared(Arc<str>),
}

impl Text<'_> {
    /// Number of characters (code points), which is what CEL calls a string's size.
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
