//! Configuration of PodNodeSelector: node selectors by namespace, in a file without a kind.

use std::collections::BTreeMap;

use portico_schema::Format;

use crate::configuration_kinds::{PluginConfigurationError, decode_untagged};

const TYPES: &str = r#"{"Configuration": {"fields": {"podNodeSelectorPluginConfig": {"type": "{}string"}}}}"#;

/// Configuration of PodNodeSelector.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodNodeSelectorConfiguration {
    /// Selectors by namespace, and the default selector.
    pub(super) selectors: BTreeMap<String, String>,
}

impl PodNodeSelectorConfiguration {
    /// Reads a configuration. As in upstream, selectors are parsed only when they are used.
    pub(crate) fn read(bytes: Option<&[u8]>) -> Result<Self, PluginConfigurationError> {
        let Some(bytes) = bytes else { return Ok(Self::default()) };
        let object = decode_untagged(TYPES, "Configuration", bytes, Format::Yaml)?;
        let selectors = object.at(&["podNodeSelectorPluginConfig"]);
        let selectors = selectors.entries().map(|(name, text)| (name.to_owned(), text.str().to_owned()));
        Ok(Self { selectors: selectors.collect() })
    }
}
