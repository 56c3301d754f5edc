//! What admission is configured with: plain values, checked before anything is served.

use portico_machinery::features::FeatureGates;
use portico_policy::DEFAULT_COST_LIMIT;

use crate::configuration::Configuration;
use crate::enabled_plugins::EnabledPlugins;

/// Settings of the chain. The default is upstream's.
#[derive(Clone, Debug)]
pub struct AdmissionSettings {
    /// Which plugins are on.
    pub plugins: EnabledPlugins,
    /// What they are configured with.
    pub configuration: Configuration,
    /// Feature gates, on which a few plugins depend.
    pub features: FeatureGates,
    /// How long pods stay on a node that is lost.
    pub tolerations: DefaultTolerations,
    /// What the expressions of all policies and webhooks may cost together while a request is changed, and once more while it is
    /// validated, in the units of upstream's budgets.
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

/// How long pods that do not set it stay on a node that is lost, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultTolerations {
    /// `--default-not-ready-toleration-seconds`
    pub not_ready_seconds: i64,
    /// `--default-unreachable-toleration-seconds`
    pub unreachable_seconds: i64,
}

impl Default for DefaultTolerations {
    fn default() -> Self {
        Self { not_ready_seconds: 300, unreachable_seconds: 300 }
    }
}
