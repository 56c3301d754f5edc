//! Errors of field sets.

/// Invalid JSON of a field set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// Value that is not an object of objects.
    #[error("a set of fields must be an object")]
    NoObject,
    /// Path element that cannot be parsed.
    #[error("parsing key as path element: {0}")]
    Element(String),
}
