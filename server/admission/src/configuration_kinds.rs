//! Configuration kinds of plugins, which the schema engine decodes. The plugins check that the files they name exist.

use std::path::Path;

use portico_gostd::os::error_text;

pub use portico_schema::configuration::ConfigurationError as PluginConfigurationError;
pub(crate) use portico_schema::configuration::{ConfigKind, Scheme, decode_untagged};

/// Checks that a file exists, with Go's error message.
pub(crate) fn must_exist(file: &Path) -> Result<(), PluginConfigurationError> {
    let missing = |error: std::io::Error| {
        PluginConfigurationError::Message(format!("stat {}: {}", file.display(), error_text(&error)))
    };
    std::fs::metadata(file).map(drop).map_err(missing)
}
