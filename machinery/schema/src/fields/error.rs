//! What is no set of fields.

/// JSON that is no set of fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// A set is an object of objects.
    #[error("a set of fields must be an object")]
    NoObject,
    /// A step that cannot be read.
    #[error("parsing key as path element: {0}")]
    Element(String),
}
