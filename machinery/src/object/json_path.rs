//! kubectl's dialect of JSONPath: how a definition says where a column's cells come from.
//!
//! Pure: text in, a path out; a path and an object in, what it finds first out. Reading and finding follow upstream where
//! it is odd, too: `['a.b']` are two fields and `['a\.b']` is one, `..` finds texts, maps and lists but no numbers, there
//! is neither `&&` nor `||`, and values of different types cannot be compared.

mod evaluate;
mod found;
mod parse;
mod quoted;
#[cfg(test)]
mod tests;

pub use found::Found;

use std::sync::Arc;

use super::Object;
use parse::Steps;

/// How long a path may be, in bytes. Upstream has no limit.
pub const LONGEST_PATH: usize = 16 * 1024;

/// How many values a path may look at in one object before it finds nothing. Upstream has no limit: a few `..` in a row
/// look at each value many times.
pub const MOST_VISITED: usize = 100_000;

/// A path; cheap to clone.
#[derive(Clone, Debug)]
pub struct JsonPath {
    text: Arc<str>,
    /// Of a template with several braces each; only what the first finds is ever shown.
    lists: Arc<[Steps]>,
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidJsonPath {
    /// It goes on for more than [`LONGEST_PATH`].
    #[error("a path may have {LONGEST_PATH} bytes at most")]
    TooLong,
    /// Something is opened and not closed.
    #[error("{0} is not closed")]
    Unclosed(&'static str),
    /// A character that begins nothing.
    #[error("{0:?} begins nothing")]
    Unexpected(char),
    /// Two `..` in a row.
    #[error("one .. follows another")]
    TwiceRecursive,
    /// What looks like a number and is none.
    #[error("{0:?} is no number")]
    Number(String),
    /// What stands between brackets.
    #[error("{0:?} is no index")]
    Index(String),
    /// A quoted text with an escape that means nothing.
    #[error("{0} cannot be unquoted")]
    Quoted(String),
    /// Filters and unions inside each other without end.
    #[error("it is nested too deeply")]
    Nested,
}

impl JsonPath {
    /// Reads a path as columns have it: without the outer braces.
    ///
    /// # Errors
    /// [`InvalidJsonPath`].
    pub fn parse(text: &str) -> Result<Self, InvalidJsonPath> {
        if text.len() > LONGEST_PATH {
            return Err(InvalidJsonPath::TooLong);
        }
        Ok(Self { text: text.into(), lists: parse::braced(text)?.into() })
    }

    /// The first that it finds; nothing when there is none, when it does not fit the object (an index beyond the end, a
    /// filter of what is no list), or when it would look at more than [`MOST_VISITED`] values.
    #[must_use]
    pub fn first<'a>(&'a self, object: &'a Object) -> Option<Found<'a>> {
        evaluate::first(&self.lists, object)
    }
}

/// Equal texts are equal paths.
impl PartialEq for JsonPath {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for JsonPath {}
