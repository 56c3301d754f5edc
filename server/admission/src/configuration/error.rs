//! Errors of the admission configuration, with upstream's messages.

use crate::configuration_kinds::PluginConfigurationError;

/// Error of the admission configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// The file cannot be read.
    #[error(
        "failed to read plugin config: unable to read admission control configuration from {} [{reason}]",
        portico_gostd::strconv::quote(path)
    )]
    File {
        /// Path of the file.
        path: String,
        /// Error of the operating system.
        reason: String,
    },
    /// The file is not an `AdmissionConfiguration`.
    #[error("failed to read plugin config: {0}")]
    Decode(PluginConfigurationError),
    /// A file to which the configuration refers cannot be read.
    #[error("couldn't open admission plugin configuration {path}: {reason}")]
    Path {
        /// Path of the file.
        path: String,
        /// Error of the operating system.
        reason: String,
    },
    /// The configuration of a plugin is invalid.
    #[error("couldn't init admission plugin {}: {error}", portico_gostd::strconv::quote(plugin))]
    Plugin {
        /// Name of the plugin.
        plugin: &'static str,
        /// Error in the configuration.
        error: PluginConfigurationError,
    },
}
