//! Why an encryption configuration cannot be used.

use std::path::PathBuf;

use portico_gostd::os::error_text;
use portico_gostd::strconv::quote;
use portico_machinery::{aggregate, field};
use portico_schema::configuration::ConfigurationError;
use portico_store::MaskedRule;

/// Why an encryption configuration cannot be used; upstream's words, one line.
#[derive(Debug, thiserror::Error)]
pub enum EncryptionError {
    /// The file cannot be read.
    #[error(
        "error while parsing file: error while loading file: error reading encryption provider configuration file {}: \
         open {}: {}", quote(&path.display().to_string()), path.display(), error_text(error)
    )]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// There is nothing in the file.
    #[error(
        "error while parsing file: error while loading file: encryption provider configuration file {} is empty",
        quote(&.0.display().to_string())
    )]
    Empty(PathBuf),
    /// Not an EncryptionConfiguration.
    #[error(
        "error while parsing file: error decoding encryption provider configuration file {}: {error}",
        quote(&path.display().to_string())
    )]
    Decode {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: ConfigurationError,
    },
    /// Values that are not allowed.
    #[error("error while parsing file: {}", aggregate(.0))]
    Invalid(Vec<field::Error>),
    /// A rule that could never count.
    #[error("error while building transformers: {0}")]
    Masked(#[from] MaskedRule),
    /// A provider that cannot be made.
    #[error("error while building transformers: {0}")]
    Provider(String),
    /// The key services of a changed file do not answer.
    #[error(
        "health check for new transformers failed, polling error timed out waiting for the condition: {0}"
    )]
    Unhealthy(String),
}
