//! Settings of admission: plain values, checked before the server serves requests.

use portico_machinery::features::FeatureGates;
use portico_policy::DEFAULT_COST_LIMIT;

use crate::configuration::Configuration;
use crate::enabled_plugins::EnabledPlugins;

/// Settings of the chain. The defaults are upstream's.
#[derive(Clone, Debug)]
pub struct AdmissionSettings {
    /// Enabled plugins.
    pub plugins: EnabledPlugins,
    /// Configuration of the plugins.
    pub configuration: Configuration,
    /// Feature gates, on which a few plugins depend.
    pub features: FeatureGates,
    /// Default tolerations of pods.
    pub tolerations: DefaultTolerations,
    /// Cost budget of the expressions of all policies and webhooks during the mutation of a request, and again during its
    /// validation, in the units of upstream's budgets.
    pub expression_cost_limit: u64,
}

impl Default for AdmissionSettings {
    fn default() -> Self {
        Self {
            plugins: EnabledPlugins::default(),
            configuration: Configuration::default(),
            features: FeatureGates::default(),
            tolerations: DefaultTolerations::default(),
            expression_cost_limit: DEFAULT_COST_LIMIT,
        }
    }
}

/// Time in seconds that pods without such tolerations stay on an unreachable or not ready node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultTolerations {
    /// Value of `--default-not-ready-toleration-seconds`.
    pub not_ready_seconds: i64,
    /// Value of `--default-unreachable-toleration-seconds`.
    pub unreachable_seconds: i64,
}

impl Default for DefaultTolerations {
    fn default() -> Self {
        Self { not_ready_seconds: 300, unreachable_seconds: 300 }
    }
}
