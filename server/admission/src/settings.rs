//! What admission is configured with: plain values, checked before anything is served.

use portico_machinery::features::FeatureGates;

/// Which plugins of upstream's list are on, in its order. The default is what is on when flags say nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnabledPlugins(pub(crate) Vec<&'static str>);

impl EnabledPlugins {
    /// Whether the plugin of this name is on.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(&name)
    }
}

/// Settings of the chain. The default is upstream's.
#[derive(Clone, Debug, Default)]
pub struct AdmissionSettings {
    /// Which plugins are on.
    pub plugins: EnabledPlugins,
    /// Feature gates, on which a few plugins depend.
    pub features: FeatureGates,
}
