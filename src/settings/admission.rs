//! Which admission plugins are on, by upstream's names, and what they are configured with.

use std::path::PathBuf;

use clap::Args;
use portico_machinery::features::FeatureGates;
use portico_server::{
    AdmissionConfiguration, AdmissionSettings, DefaultTolerations, EnabledPlugins, PluginNameError,
};

use super::SettingError;

const ENABLE: &str = "--enable-admission-plugins";
const DISABLE: &str = "--disable-admission-plugins";
const ONLY: &str = "--admission-control";

/// Admission plugins to turn on and off.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Admission"))]
pub(crate) struct Admission {
    /// Admission plugins to turn on besides those that are on by default.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) enable_admission_plugins: Vec<String>,
    /// Admission plugins to turn off although they are on by default.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) disable_admission_plugins: Vec<String>,
    /// All admission plugins that are on, in any order. Deprecated: use --enable-admission-plugins and --disable-admission-plugins.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) admission_control: Vec<String>,
    /// What admission plugins are configured with: an AdmissionConfiguration, YAML or JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) admission_control_config_file: Option<PathBuf>,
    /// Seconds that pods stay on a node that is not ready, where they say nothing of it (DefaultTolerationSeconds).
    #[arg(long, value_name = "SECONDS", default_value_t = 300, allow_negative_numbers = true)]
    pub(crate) default_not_ready_toleration_seconds: i64,
    /// Seconds that pods stay on a node that cannot be reached, where they say nothing of it (DefaultTolerationSeconds).
    #[arg(long, value_name = "SECONDS", default_value_t = 300, allow_negative_numbers = true)]
    pub(crate) default_unreachable_toleration_seconds: i64,
    /// What the expressions of all policies and webhooks may cost together while a request is changed, and once more while it is
    /// validated, in the units of upstream's budgets; questions to the authorizer do not count. Upstream bounds each policy alone.
    #[arg(long, value_name = "UNITS", default_value_t = AdmissionSettings::default().expression_cost_limit, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) admission_expression_cost_limit: u64,
}

impl Admission {
    /// What admission is configured with; reads the files that are named.
    pub(crate) fn settings(&self, features: FeatureGates) -> Result<AdmissionSettings, SettingError> {
        let (plugins, path) = (self.plugins()?, self.admission_control_config_file.as_deref());
        let configuration = AdmissionConfiguration::read(path, &plugins, &features)
            .map_err(|error| SettingError::new("--admission-control-config-file", error))?;
        let tolerations = DefaultTolerations {
            not_ready_seconds: self.default_not_ready_toleration_seconds,
            unreachable_seconds: self.default_unreachable_toleration_seconds,
        };
        let expression_cost_limit = self.admission_expression_cost_limit;
        Ok(AdmissionSettings { plugins, configuration, features, tolerations, expression_cost_limit })
    }

    /// Which plugins are on.
    fn plugins(&self) -> Result<EnabledPlugins, SettingError> {
        let (enable, disable) = (&self.enable_admission_plugins, &self.disable_admission_plugins);
        if !self.admission_control.is_empty() {
            if !enable.is_empty() || !disable.is_empty() {
                let flags = "admission-control and enable-admission-plugins/disable-admission-plugins flags";
                return Err(SettingError::new(ONLY, format!("{flags} are mutually exclusive")));
            }
            return EnabledPlugins::only(&self.admission_control).map_err(|e| SettingError::new(ONLY, e));
        }
        EnabledPlugins::from_flags(enable, disable).map_err(|error| {
            let of_disable = matches!(&error, PluginNameError::Unknown(name) if !enable.contains(name));
            SettingError::new(if of_disable { DISABLE } else { ENABLE }, error)
        })
    }

    pub(super) fn check(&self, features: FeatureGates) -> Result<(), SettingError> {
        self.settings(features).map(drop)
    }
}
