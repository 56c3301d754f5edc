//! Flags of encryption at rest.

use std::path::PathBuf;

use clap::Args;
use portico_server::EncryptionSettings;

use super::SettingError;

const CONFIG: &str = "--encryption-provider-config";
const RELOAD: &str = "--encryption-provider-config-automatic-reload";

/// Flags of encryption at rest.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Storage"))]
pub(crate) struct Encryption {
    /// EncryptionConfiguration file (YAML or JSON) with the encryption providers of each resource.
    #[arg(long, value_name = "FILE")]
    pub(crate) encryption_provider_config: Option<PathBuf>,
    /// Reload --encryption-provider-config when it changes.
    ///
    /// With this flag all KMS plugins share one health check, which exists even without KMS plugins.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set)]
    pub(crate) encryption_provider_config_automatic_reload: bool,
}

impl Encryption {
    pub(crate) fn settings(&self) -> EncryptionSettings {
        EncryptionSettings {
            config: self.encryption_provider_config.clone(),
            automatic_reload: self.encryption_provider_config_automatic_reload,
        }
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        if self.encryption_provider_config.is_none() && self.encryption_provider_config_automatic_reload {
            return Err(SettingError::new(RELOAD, format!("{RELOAD} must be set with {CONFIG}")));
        }
        self.settings().check().map_err(|error| SettingError::new(CONFIG, error))
    }
}
