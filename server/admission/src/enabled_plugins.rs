//! The set of plugins that are on, as a plain value: how it comes from flags is the module `enabled`'s.

/// Which plugins of upstream's list are on, in its order. The default is what is on when no flag is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnabledPlugins(pub(crate) Vec<&'static str>);

impl EnabledPlugins {
    /// Whether the plugin of this name is on.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(&name)
    }
}
