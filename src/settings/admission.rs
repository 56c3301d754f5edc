//! Which admission plugins are on, by upstream's names, and what they are configured with.

use clap::Args;
use portico_server::{EnabledPlugins, PluginNameError};

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
}

impl Admission {
    /// Which plugins are on.
    pub(crate) fn plugins(&self) -> Result<EnabledPlugins, SettingError> {
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

    pub(super) fn check(&self) -> Result<(), SettingError> {
        self.plugins().map(drop)
    }
}
