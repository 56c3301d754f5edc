//! Flags of JSON Web Token issuers: a configuration file, or flags for a single OpenID Connect issuer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use portico_server::{AuthenticationSettings, OidcFlags};

use super::SettingError;

const CONFIG: &str = "--authentication-config";
const ISSUER_URL: &str = "--oidc-issuer-url";

/// Flags of JSON Web Token issuers.
#[derive(Args, Clone, Debug)]
pub(crate) struct Oidc {
    /// AuthenticationConfiguration file with JWT issuers and rules for anonymous requests.
    ///
    /// The file is reloaded when it changes (checked every 10 seconds, and on SIGHUP). --oidc-* flags cannot be combined
    /// with it.
    #[arg(long, value_name = "FILE")]
    pub(crate) authentication_config: Option<PathBuf>,
    /// URL of a trusted OpenID Connect issuer; must use https.
    #[arg(long, value_name = "URL")]
    pub(crate) oidc_issuer_url: Option<String>,
    /// Client ID that ID tokens must have as their audience.
    #[arg(long, value_name = "ID")]
    pub(crate) oidc_client_id: Option<String>,
    /// CA certificates of the issuer (PEM); by default, the system's CA certificates are used.
    #[arg(long, value_name = "FILE")]
    pub(crate) oidc_ca_file: Option<PathBuf>,
    /// Claim of ID tokens that contains the user name [default: sub].
    #[arg(long, value_name = "CLAIM")]
    pub(crate) oidc_username_claim: Option<String>,
    /// Prefix added to user names; "-" = no prefix.
    ///
    /// Defaults to the issuer URL followed by "#", or to no prefix if the claim is `email`.
    #[arg(long, value_name = "PREFIX", allow_hyphen_values = true)]
    pub(crate) oidc_username_prefix: Option<String>,
    /// Claim of ID tokens that contains the groups of the user.
    #[arg(long, value_name = "CLAIM")]
    pub(crate) oidc_groups_claim: Option<String>,
    /// Prefix added to group names.
    #[arg(long, value_name = "PREFIX", allow_hyphen_values = true)]
    pub(crate) oidc_groups_prefix: Option<String>,
    /// Accepted signature algorithms, separated by commas [default: RS256].
    ///
    /// Supported algorithms are RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and ES512.
    #[arg(long, value_name = "ALGORITHMS", value_delimiter = ',')]
    pub(crate) oidc_signing_algs: Vec<String>,
    /// Claim with the value that ID tokens must have, as KEY=VALUE (repeatable).
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) oidc_required_claim: Vec<(String, String)>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (claim, value) =
        text.split_once('=').ok_or_else(|| format!("malformed pair, expect string=string: {text:?}"))?;
    Ok((claim.trim().to_owned(), value.trim().to_owned()))
}

impl Oidc {
    /// Rejects `--authentication-config` together with `--oidc-*` flags, and such flags without issuer URL and client ID.
    pub(super) fn check(&self) -> Result<(), SettingError> {
        let texts = [
            &self.oidc_issuer_url,
            &self.oidc_client_id,
            &self.oidc_username_claim,
            &self.oidc_username_prefix,
            &self.oidc_groups_claim,
            &self.oidc_groups_prefix,
        ];
        let flags = texts.into_iter().any(Option::is_some)
            || self.oidc_ca_file.is_some()
            || !self.oidc_signing_algs.is_empty()
            || !self.oidc_required_claim.is_empty();
        if self.authentication_config.is_some() && flags {
            let message = "authentication-config file and oidc-* flags are mutually exclusive";
            return Err(SettingError::new(CONFIG, message));
        }
        let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        if flags && !(is_set(&self.oidc_issuer_url) && is_set(&self.oidc_client_id)) {
            let message =
                "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set";
            return Err(SettingError::new(ISSUER_URL, message));
        }
        Ok(())
    }

    /// Returns the settings for the control service. `anonymous_flag` is true if `--anonymous-auth` is set.
    pub(super) fn settings(&self, anonymous_flag: bool) -> AuthenticationSettings {
        if let Some(path) = self.authentication_config.clone() {
            return AuthenticationSettings::File { path, anonymous_flag };
        }
        let (Some(issuer_url), Some(client_id)) = (self.oidc_issuer_url.clone(), self.oidc_client_id.clone())
        else {
            return AuthenticationSettings::None;
        };
        let or = |text: &Option<String>, default: &str| text.clone().unwrap_or_else(|| default.to_owned());
        let signing_algs = match &self.oidc_signing_algs[..] {
            [] => vec!["RS256".to_owned()],
            named => named.to_vec(),
        };
        AuthenticationSettings::Flags(Box::new(OidcFlags {
            issuer_url,
            client_id,
            ca_file: self.oidc_ca_file.clone(),
            username_claim: or(&self.oidc_username_claim, "sub"),
            username_prefix: or(&self.oidc_username_prefix, ""),
            groups_claim: or(&self.oidc_groups_claim, ""),
            groups_prefix: or(&self.oidc_groups_prefix, ""),
            signing_algs,
            required_claims: self.oidc_required_claim.iter().cloned().collect::<BTreeMap<_, _>>(),
        }))
    }
}
