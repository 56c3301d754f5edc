//! Errors of an encryption configuration.

use std::path::PathBuf;

use portico_gostd::os::error_text;
use portico_gostd::strconv::quote;
use portico_machinery::{aggregate, field};
use portico_schema::configuration::ConfigurationError;
use portico_store::MaskedRule;

/// Error of an encryption configuration, with upstream's message in one line.
#[derive(Debug, thiserror::Error)]
pub enum EncryptionError {
    /// The file cannot be read.
    #[error(
        "error while parsing file: error while loading file: error reading encryption provider configuration file {}: \
         open {}: {}", quote(&path.display().to_string()), path.display(), error_text(error)
    )]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        error: std::io::Error,
    },
    /// The file is empty.
    #[error(
        "error while parsing file: error while loading file: encryption provider configuration file {} is empty",
        quote(&.0.display().to_string())
    )]
    Empty(PathBuf),
    /// The file is not an EncryptionConfiguration.
    #[error(
        "error while parsing file: error decoding encryption provider configuration file {}: {error}",
        quote(&path.display().to_string())
    )]
    Decode {
        /// Path of the file.
        path: PathBuf,
        /// Error of the decoder.
        error: ConfigurationError,
    },
    /// The file has invalid values.
    #[error("error while parsing file: {}", aggregate(.0))]
    Invalid(Vec<field::Error>),
    /// A rule that can never apply, because an earlier rule covers its resources.
    #[error("error while building transformers: {0}")]
    Masked(#[from] MaskedRule),
    /// A provider cannot be created.
    #[error("error while building transformers: {0}")]
    Provider(String),
    /// The key services of a changed file do not respond.
    #[error(
        "health check for new transformers failed, polling error timed out waiting for the condition: {0}"
    )]
    Unhealthy(String),
}
