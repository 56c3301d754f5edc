//! What cannot be made a structural schema.

/// What cannot be made a structural schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// A keyword that has no place in a structural schema.
    #[error("OpenAPIV3Schema '{0}' is not supported")]
    Unsupported(&'static str),
    /// A list of schemas where one is meant.
    #[error("OpenAPIV3Schema 'items' must be a schema, but is an array")]
    Items,
    /// An extension that may be left out, not be false.
    #[error("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined")]
    PreserveFalse,
    /// More levels than any accepted body has.
    #[error("OpenAPIV3Schema is nested too deeply")]
    TooDeep,
    /// Bytes that are no JSON.
    #[error("OpenAPIV3Schema cannot be read: {0}")]
    NoJson(String),
}
