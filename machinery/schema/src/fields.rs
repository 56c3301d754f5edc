//! Sets of fields: what a manager owns of an object, in structured-merge-diff's terms.
//!
//! A [`Set`] is a trie of [`PathElement`]s; `fieldsV1` is its JSON form. Knows no types: modules that walk values along a
//! type are in [`crate::apply`].

mod element;
mod error;
mod json;
mod set;

pub use element::PathElement;
pub(crate) use element::compare_values;
pub use error::FieldsError;
pub(crate) use set::Node;
pub use set::Set;

/// A path from the root, as upstream prints it: `.spec.containers[name="x"].image`.
#[must_use]
pub fn print_path(path: &[&PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
#[path = "fields_tests.rs"]
mod tests;
