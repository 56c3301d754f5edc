//! Why a configuration cannot be used, in upstream's words but always in one line.

use portico_machinery::{aggregate, field};

/// Why one configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// Neither JSON nor YAML, or no object.
    #[error("{0}")]
    Syntax(String),
    /// A field is not there that says what it is.
    #[error("Object '{field}' is missing in '{}'", one_line(body))]
    Missing {
        /// `Kind` or `apiVersion`.
        field: &'static str,
        /// What is there.
        body: String,
    },
    /// Of a kind that the scheme does not know.
    #[error(
        "no kind {} is registered for version {}",
        portico_gostd::strconv::quote(kind),
        portico_gostd::strconv::quote(version)
    )]
    NotRegistered {
        /// The kind.
        kind: String,
        /// Its group and version.
        version: String,
    },
    /// A value of another type.
    #[error("{0}")]
    Type(String),
    /// Unknown or repeated fields.
    #[error("strict decoding error: {}", .0.join(", "))]
    Strict(Vec<String>),
    /// Values that are not allowed.
    #[error("{}", aggregate(_0))]
    Invalid(Vec<field::Error>),
    /// What is wrong in other words.
    #[error("{0}")]
    Words(String),
}

/// A text without line breaks.
fn one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}
