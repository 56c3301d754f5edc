//! Flags of admission: enabled plugins and their configuration.

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

/// Flags of admission.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Admission"))]
pub(crate) struct Admission {
    /// Admission plugins to enable in addition to the default plugins, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) enable_admission_plugins: Vec<String>,
    /// Admission plugins to disable although they are enabled by default, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) disable_admission_plugins: Vec<String>,
    /// Complete list of enabled admission plugins; deprecated.
    ///
    /// Use --enable-admission-plugins and --disable-admission-plugins instead. The order has no effect.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) admission_control: Vec<String>,
    /// AdmissionConfiguration file (YAML or JSON) with the configuration of admission plugins.
    #[arg(long, value_name = "FILE")]
    pub(crate) admission_control_config_file: Option<PathBuf>,
    /// Default tolerationSeconds of pods for the taint node.kubernetes.io/not-ready.
    ///
    /// The admission plugin DefaultTolerationSeconds adds the toleration to pods that do not have it.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, allow_negative_numbers = true)]
    pub(crate) default_not_ready_toleration_seconds: i64,
    /// Default tolerationSeconds of pods for the taint node.kubernetes.io/unreachable.
    ///
    /// The admission plugin DefaultTolerationSeconds adds the toleration to pods that do not have it.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, allow_negative_numbers = true)]
    pub(crate) default_unreachable_toleration_seconds: i64,
    /// Maximum CEL cost of all policies and webhooks together in one phase of a request.
    ///
    /// The limit applies separately to mutation and to validation, and has the unit of kube-apiserver's cost budgets. Calls
    /// to the authorizer do not count. kube-apiserver limits each policy separately.
    #[arg(long, value_name = "UNITS", default_value_t = AdmissionSettings::default().expression_cost_limit, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) admission_expression_cost_limit: u64,
}

impl Admission {
    /// Returns the settings of admission. Reads the configuration files.
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

    /// Returns the enabled plugins.
    fn plugins(&self) -> Result<EnabledPlugins, SettingError> {
        let (enable, disable) = (&self.enable_admission_plugins, &self.disable_admission_plugins);
        if !self.admission_control.is_empty() {
            if !enable.is_empty() || !disable.is_empty() {
                let flags = "admission-control and enable-admission-plugins/disable-admission-plugins flags";
                return Err(SettingError::new(ONLY, format!("{flags} are mutually exclusive")));
            }
            return EnabledPlugins::only(&self.admission_control)
                .map_err(|error| plugin_flag_error(ONLY, error));
        }
        EnabledPlugins::from_flags(enable, disable).map_err(|error| {
            let of_disable = matches!(&error, PluginNameError::Unknown(name) if !enable.contains(name));
            plugin_flag_error(if of_disable { DISABLE } else { ENABLE }, error)
        })
    }

    pub(super) fn check(&self, features: FeatureGates) -> Result<(), SettingError> {
        self.settings(features).map(drop)
    }
}

/// Returns the error of a flag that lists plugins. Its hint lists the plugins that exist.
fn plugin_flag_error(flag: &str, error: PluginNameError) -> SettingError {
    let plugins = || portico_server::plugin_reference().map(|plugin| plugin.name).collect::<Vec<_>>();
    let hint = matches!(error, PluginNameError::Unknown(_))
        .then(|| format!("the plugins are {}", plugins().join(", ")));
    SettingError::new(flag, error).with_hint(hint)
}
