//! Flags of service account tokens: issuers, keys, lifetime.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer};

use portico_kit::pki::pem_reason;

use super::SettingError;
use super::files::read;
use super::values::duration;

/// Default issuer, as kubeadm configures it.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

const ENDPOINT: &str = "--service-account-signing-endpoint";

/// Returns true if `name` is a valid name of an abstract socket (upstream's `abstractSocketRegex`).
fn is_abstract_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.split('.').all(|part| !part.is_empty() && part.chars().all(plain))
}

/// Flags of service account tokens.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Service account tokens"))]
pub(crate) struct ServiceAccounts {
    /// Issuer of service account tokens (repeatable).
    ///
    /// The first issuer is used for new tokens; tokens of all issuers are accepted.
    #[arg(long, value_name = "URL", default_value = ISSUER)]
    pub(crate) service_account_issuer: Vec<String>,
    /// Additional keys that verify service account tokens (PEM, repeatable).
    ///
    /// The signing key is always accepted.
    #[arg(long, value_name = "FILE")]
    pub(crate) service_account_key_file: Vec<PathBuf>,
    /// Private key that signs service account tokens (PEM).
    ///
    /// Without this flag a key is generated and kept in the data directory.
    #[arg(long, value_name = "FILE")]
    pub(crate) service_account_signing_key_file: Option<PathBuf>,
    /// Unix socket of an external signer of service account tokens (ExternalJWTSigner v1).
    ///
    /// The value is a path, or @ followed by the name of an abstract socket. Cannot be combined with
    /// --service-account-signing-key-file or --service-account-key-file.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) service_account_signing_endpoint: Option<String>,
    /// Audiences that tokens for this API may have, separated by commas; by default, the issuers.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) api_audiences: Vec<String>,
    /// Maximum lifetime of requested tokens, between 1h and 2^32 seconds.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) service_account_max_token_expiration: Option<Duration>,
    /// Extend the lifetime of pods' tokens to one year, for clients that do not reload them.
    ///
    /// The requested lifetime is recorded in the token (`warnafter`).
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true)]
    pub(crate) service_account_extend_token_expiration: bool,
    /// URL at which verifiers of service account tokens find the public keys; by default, a URL of this server.
    #[arg(long, value_name = "URL")]
    pub(crate) service_account_jwks_uri: Option<String>,
    /// Reject tokens whose Secret no longer exists.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true)]
    pub(crate) service_account_lookup: bool,
    /// Accept bootstrap tokens, which are Secrets in kube-system used by new nodes.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) enable_bootstrap_token_auth: bool,
    /// Time without use after which a legacy token is invalidated, and later deleted.
    ///
    /// Applies to tokens in automatically created Secrets of service accounts. A token that has been invalid for the same
    /// period is deleted.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "8760h")]
    pub(crate) legacy_service_account_token_clean_up_period: Duration,
}

impl ServiceAccounts {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        for issuer in &self.service_account_issuer {
            let absolute = issuer.contains(':');
            if issuer.is_empty() || (absolute && url::Url::parse(issuer).is_err()) {
                return Err(SettingError::new(
                    "--service-account-issuer",
                    format!("{issuer:?} is not a URL"),
                ));
            }
        }
        if let Some(uri) = &self.service_account_jwks_uri
            && !url::Url::parse(uri).is_ok_and(|uri| uri.scheme() == "https")
        {
            return Err(SettingError::new(
                "--service-account-jwks-uri",
                format!("{uri:?} is not an https URL"),
            ));
        }
        if let Some(limit) = self.service_account_max_token_expiration
            && !(3600..=1 << 32).contains(&limit.as_secs())
        {
            let setting = "--service-account-max-token-expiration";
            return Err(SettingError::new(setting, "must be between 1h and 2^32 seconds"));
        }
        if self.legacy_service_account_token_clean_up_period.is_zero() {
            let setting = "--legacy-service-account-token-clean-up-period";
            return Err(SettingError::new(setting, "must be greater than 0"));
        }
        self.check_endpoint()?;
        self.check_keys()
    }

    /// Checks `--service-account-signing-endpoint` like upstream's `validateServiceAccountTokenSigningConfig`.
    fn check_endpoint(&self) -> Result<(), SettingError> {
        let Some(endpoint) = &self.service_account_signing_endpoint else { return Ok(()) };
        let refuse = |message: &str| Err(SettingError::new(ENDPOINT, message));
        if endpoint.is_empty() {
            return refuse("is empty; pass the path of a Unix socket");
        }
        if self.service_account_signing_key_file.is_some() || !self.service_account_key_file.is_empty() {
            return refuse(
                "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with `--service-account-signing-endpoint` (They are mutually exclusive)",
            );
        }
        if endpoint.strip_prefix('@').is_some_and(|name| !is_abstract_name(name)) {
            let message = "when prefixed with @ must be a valid abstract socket name";
            return refuse(&format!("invalid value {endpoint:?} passed for `{ENDPOINT}`, {message}"));
        }
        Ok(())
    }

    fn check_keys(&self) -> Result<(), SettingError> {
        for file in &self.service_account_key_file {
            let pem = read("--service-account-key-file", file)?;
            let public = SubjectPublicKeyInfoDer::from_pem_slice(&pem).is_ok();
            let certified = CertificateDer::from_pem_slice(&pem).is_ok();
            if !public && !certified && PrivateKeyDer::from_pem_slice(&pem).is_err() {
                let message = format!("{}: contains no PEM key", file.display());
                return Err(SettingError::new("--service-account-key-file", message));
            }
        }
        let Some(file) = &self.service_account_signing_key_file else { return Ok(()) };
        let setting = "--service-account-signing-key-file";
        PrivateKeyDer::from_pem_slice(&read(setting, file)?)
            .map(drop)
            .map_err(|e| SettingError::new(setting, format!("{}: {}", file.display(), pem_reason(&e))))
    }
}
