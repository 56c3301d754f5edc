//! Configuration kinds of plugins: read by the schema engine; what they name is looked for here.

use std::path::Path;

use portico_gostd::os::error_text;

pub use portico_schema::configuration::ConfigurationError as PluginConfigurationError;
pub(crate) use portico_schema::configuration::{ConfigKind, Scheme, untagged};

/// A refusal in Go's words for a file that is not there.
pub(crate) fn must_exist(file: &Path) -> Result<(), PluginConfigurationError> {
    let missing = |error: std::io::Error| {
        PluginConfigurationError::Words(format!("stat {}: {}", file.display(), error_text(&error)))
    };
    std::fs::metadata(file).map(drop).map_err(missing)
}
