//! Why the configuration of admission cannot be used, in upstream's words.

use crate::configuration_kinds::PluginConfigurationError;

/// Why the configuration of admission cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// The file cannot be read.
    #[error(
        "failed to read plugin config: unable to read admission control configuration from {} [{reason}]",
        portico_gostd::strconv::quote(path)
    )]
    File {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
    /// The file is no `AdmissionConfiguration`.
    #[error("failed to read plugin config: {0}")]
    Decode(PluginConfigurationError),
    /// A file that the file names cannot be read.
    #[error("couldn't open admission plugin configuration {path}: {reason}")]
    Path {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
    /// What a plugin is configured with cannot be used.
    #[error("couldn't init admission plugin {}: {error}", portico_gostd::strconv::quote(plugin))]
    Plugin {
        /// The plugin.
        plugin: &'static str,
        /// Why.
        error: PluginConfigurationError,
    },
}
