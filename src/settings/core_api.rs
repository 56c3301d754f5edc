//! Settings that are parsed and checked now and used by the core API server.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use ipnet::IpNet;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};

use super::SettingError;
use super::files::read;

/// Settings of the core API server, which comes later: checked here, used there.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Core API (parsed and checked; used by the core API server)"))]
pub(crate) struct CoreApi {
    /// Ranges of Services' cluster addresses: one, or two of different families.
    #[arg(long, value_name = "CIDRS", value_delimiter = ',', default_value = "10.0.0.0/24")]
    pub(crate) service_cluster_ip_range: Vec<IpNet>,
    /// The issuer of service-account tokens, first the one that signs. Checked; used by the core API server.
    #[arg(long, value_name = "URL")]
    pub(crate) service_account_issuer: Vec<String>,
    /// Keys that service-account tokens are checked with (PEM). Checked; used by the core API server.
    #[arg(long, value_name = "FILE")]
    pub(crate) service_account_key_file: Vec<PathBuf>,
    /// The key that signs service-account tokens (PEM). Checked; used by the core API server.
    #[arg(long, value_name = "FILE")]
    pub(crate) service_account_signing_key_file: Option<PathBuf>,
    /// Allow privileged containers. Checked; used by the core API server.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) allow_privileged: bool,
}

impl CoreApi {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        self.check_ranges()?;
        for issuer in &self.service_account_issuer {
            let absolute = issuer.contains(':');
            if issuer.is_empty() || (absolute && url::Url::parse(issuer).is_err()) {
                return Err(SettingError::new("--service-account-issuer", format!("{issuer:?} is no URL")));
            }
        }
        for file in &self.service_account_key_file {
            let pem = read("--service-account-key-file", file)?;
            let public = SubjectPublicKeyInfoDer::from_pem_slice(&pem).is_ok();
            if !public && PrivateKeyDer::from_pem_slice(&pem).is_err() {
                let message = format!("{}: no PEM key in it", file.display());
                return Err(SettingError::new("--service-account-key-file", message));
            }
        }
        let Some(file) = &self.service_account_signing_key_file else { return Ok(()) };
        let setting = "--service-account-signing-key-file";
        PrivateKeyDer::from_pem_slice(&read(setting, file)?)
            .map(drop)
            .map_err(|e| SettingError::new(setting, format!("{}: {e}", file.display())))
    }

    fn check_ranges(&self) -> Result<(), SettingError> {
        let wrong = |message: &str| Err(SettingError::new("--service-cluster-ip-range", message));
        match self.service_cluster_ip_range.as_slice() {
            [] | [_] => Ok(()),
            [a, b] if a.addr().is_ipv4() != b.addr().is_ipv4() => Ok(()),
            [_, _] => wrong("two ranges must be of different families"),
            _ => wrong("at most two ranges"),
        }
    }
}
