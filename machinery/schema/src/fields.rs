//! Field sets: the fields that a manager owns, in the terms of structured-merge-diff.
//!
//! A [`FieldSet`] is a trie of [`PathElement`]s; `fieldsV1` is its JSON form. This module does not use types; code that
//! walks values according to a type is in [`crate::apply`].

mod element;
mod error;
mod json;
mod set;

pub use element::PathElement;
pub(crate) use element::compare_values;
pub use error::FieldsError;
pub use set::FieldSet;
pub(crate) use set::SetNode;

/// Formats a path from the root as upstream prints it: `.spec.containers[name="x"].image`.
#[must_use]
pub fn print_path(path: &[&PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
#[path = "fields_tests.rs"]
mod tests;
