//! kubectl's dialect of JSONPath, which definitions use for printer columns.
//!
//! Parses a path from text, and finds the first matching value of an object. Reproduces upstream's peculiarities: `['a.b']` is
//! two fields and `['a\.b']` is one, `..` finds strings, maps and lists but no numbers, `&&` and `||` do not exist, and values of
//! different types cannot be compared.

mod error;
mod evaluate;
mod parse;
mod quoted;
#[cfg(test)]
mod tests;
mod value;

pub use error::{InvalidJsonPath, MAX_PATH_LENGTH, MAX_VISITED};
pub use value::JsonPathValue;

use std::sync::Arc;

use super::Object;
use parse::Steps;

/// Parsed path; cheap to clone.
#[derive(Clone, Debug)]
pub struct JsonPath {
    text: Arc<str>,
    /// Steps of each brace expression of a template; only the first result of the first one is used.
    lists: Arc<[Steps]>,
}

impl JsonPath {
    /// Parses a path in the form of printer columns, without the outer braces.
    ///
    /// # Errors
    /// [`InvalidJsonPath`].
    pub fn parse(text: &str) -> Result<Self, InvalidJsonPath> {
        if text.len() > MAX_PATH_LENGTH {
            return Err(InvalidJsonPath::TooLong);
        }
        Ok(Self { text: text.into(), lists: parse::parse_template(text)?.into() })
    }

    /// Returns the first match. Returns `None` if there is none, if the path does not apply to the object (an index out of range,
    /// a filter on a value that is not a list), or if more than [`MAX_VISITED`] values would be visited.
    #[must_use]
    pub fn first<'a>(&'a self, object: &'a Object) -> Option<JsonPathValue<'a>> {
        evaluate::first(&self.lists, object)
    }
}

/// Paths are equal if their texts are equal.
impl PartialEq for JsonPath {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for JsonPath {}
