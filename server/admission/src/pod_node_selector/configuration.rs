//! What PodNodeSelector is configured with: selectors by the names of namespaces, in a file of no kind.

use std::collections::BTreeMap;

use portico_schema::Format;

use crate::configuration_kinds::{PluginConfigurationError, untagged};

const TYPES: &str = r#"{"Configuration": {"fields": {"podNodeSelectorPluginConfig": {"type": "{}string"}}}}"#;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodNodeSelectorConfiguration {
    /// Selectors by namespace, and that of all others.
    pub(super) selectors: BTreeMap<String, String>,
}

impl PodNodeSelectorConfiguration {
    /// Reads a configuration; whether its selectors can be read is found out when they are used, as upstream does.
    pub(crate) fn read(bytes: Option<&[u8]>) -> Result<Self, PluginConfigurationError> {
        let Some(bytes) = bytes else { return Ok(Self::default()) };
        let object = untagged(TYPES, "Configuration", bytes, Format::Yaml)?;
        let selectors = object.at(&["podNodeSelectorPluginConfig"]);
        let selectors = selectors.entries().map(|(name, text)| (name.to_owned(), text.str().to_owned()));
        Ok(Self { selectors: selectors.collect() })
    }
}
