//! Error of compiling a structural schema.

/// Reason why JSON is not a structural schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// Keyword that is not allowed in a structural schema.
    #[error("OpenAPIV3Schema '{0}' is not supported")]
    Unsupported(&'static str),
    /// List of schemas in place of a single schema.
    #[error("OpenAPIV3Schema 'items' must be a schema, but is an array")]
    Items,
    /// Extension that may be absent, but not false.
    #[error("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined")]
    PreserveFalse,
    /// More nesting than any accepted body has.
    #[error("OpenAPIV3Schema is nested too deeply")]
    TooDeep,
    /// Malformed JSON.
    #[error("OpenAPIV3Schema cannot be read: {0}")]
    InvalidJson(String),
}
