//! kubectl's dialect of JSONPath: how a definition says where a column's cells come from.
//!
//! Pure: text in, a path out; a path and an object in, what it finds first out. Reading and finding follow upstream where
//! it is odd, too: `['a.b']` are two fields and `['a\.b']` is one, `..` finds texts, maps and lists but no numbers, there
//! is neither `&&` nor `||`, and values of different types cannot be compared.

mod error;
mod evaluate;
mod found;
mod parse;
mod quoted;
#[cfg(test)]
mod tests;

pub use error::{InvalidJsonPath, MAX_PATH_LENGTH, MAX_VISITED};
pub use found::Found;

use std::sync::Arc;

use super::Object;
use parse::Steps;

/// A path; cheap to clone.
#[derive(Clone, Debug)]
pub struct JsonPath {
    text: Arc<str>,
    /// Of a template with several braces each; only what the first finds is ever shown.
    lists: Arc<[Steps]>,
}

impl JsonPath {
    /// Reads a path as columns have it: without the outer braces.
    ///
    /// # Errors
    /// [`InvalidJsonPath`].
    pub fn parse(text: &str) -> Result<Self, InvalidJsonPath> {
        if text.len() > MAX_PATH_LENGTH {
            return Err(InvalidJsonPath::TooLong);
        }
        Ok(Self { text: text.into(), lists: parse::braced(text)?.into() })
    }

    /// The first that it finds; nothing when there is none, when it does not fit the object (an index beyond the end, a
    /// filter of what is no list), or when it would look at more than [`MAX_VISITED`] values.
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
