//! The set of enabled plugins, as a plain value. The module `plugin_flags` derives it from flags.

/// Names of the enabled plugins, in upstream's order. The default is the set that is enabled without flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnabledPlugins(pub(crate) Vec<&'static str>);

impl EnabledPlugins {
    /// True if the named plugin is enabled.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(&name)
    }
}
