//! Errors of configuration files, with upstream's messages but always in one line.

use portico_machinery::{aggregate, field};

/// Reason why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// Text that is neither JSON nor YAML, or not an object.
    #[error("{0}")]
    Syntax(String),
    /// Missing `kind` or `apiVersion`.
    #[error("Object '{field}' is missing in '{}'", escape_line_breaks(body))]
    Missing {
        /// `Kind` or `apiVersion`.
        field: &'static str,
        /// Text of the configuration.
        body: String,
    },
    /// Kind that the scheme does not contain.
    #[error(
        "no kind {} is registered for version {}",
        portico_gostd::strconv::quote(kind),
        portico_gostd::strconv::quote(version)
    )]
    NotRegistered {
        kind: String,
        /// Group and version.
        version: String,
    },
    /// Value of a wrong type.
    #[error("{0}")]
    Type(String),
    /// Unknown or duplicate fields.
    #[error("strict decoding error: {}", .0.join(", "))]
    Strict(Vec<String>),
    /// Values that are not allowed.
    #[error("{}", aggregate(_0))]
    Invalid(Vec<field::Error>),
    /// Any other error, as a message.
    #[error("{0}")]
    Message(String),
}

/// Escapes line breaks.
fn escape_line_breaks(text: &str) -> String {
    text.replace('\n', "\\n")
}
