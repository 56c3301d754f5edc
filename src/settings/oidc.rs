//! Tokens of OpenID Connect issuers: the file that describes them, or the flags that describe one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use portico_server::{AuthenticationSettings, OidcFlags};

use super::SettingError;

const CONFIG: &str = "--authentication-config";
const ISSUER_URL: &str = "--oidc-issuer-url";

/// Settings of issuers.
#[derive(Args, Clone, Debug)]
pub(crate) struct Oidc {
    /// An AuthenticationConfiguration that names the issuers of JSON Web Tokens, and who is let in without credentials; read again
    /// when it changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) authentication_config: Option<PathBuf>,
    /// The URL of an OpenID issuer whose tokens are trusted; https alone.
    #[arg(long, value_name = "URL")]
    pub(crate) oidc_issuer_url: Option<String>,
    /// The audience that its tokens have to be for.
    #[arg(long, value_name = "ID")]
    pub(crate) oidc_client_id: Option<String>,
    /// CAs of the issuer's certificate; the system's when there is none.
    #[arg(long, value_name = "FILE")]
    pub(crate) oidc_ca_file: Option<PathBuf>,
    /// The claim that names the user: `sub` by default.
    #[arg(long, value_name = "CLAIM")]
    pub(crate) oidc_username_claim: Option<String>,
    /// What is put before names: the issuer's URL and # by default, nothing for e-mail addresses; - is nothing.
    #[arg(long, value_name = "PREFIX", allow_hyphen_values = true)]
    pub(crate) oidc_username_prefix: Option<String>,
    /// The claim that names the user's groups.
    #[arg(long, value_name = "CLAIM")]
    pub(crate) oidc_groups_claim: Option<String>,
    /// What is put before groups.
    #[arg(long, value_name = "PREFIX", allow_hyphen_values = true)]
    pub(crate) oidc_groups_prefix: Option<String>,
    /// The algorithms that tokens may be signed with: RS256 by default.
    #[arg(long, value_name = "ALGORITHMS", value_delimiter = ',')]
    pub(crate) oidc_signing_algs: Vec<String>,
    /// A claim and the value that it has to have, KEY=VALUE; may be given again.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) oidc_required_claim: Vec<(String, String)>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (claim, value) =
        text.split_once('=').ok_or_else(|| format!("malformed pair, expect string=string: {text:?}"))?;
    Ok((claim.trim().to_owned(), value.trim().to_owned()))
}

impl Oidc {
    /// One of file and flags, and flags that name an issuer.
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
            let why = "authentication-config file and oidc-* flags are mutually exclusive";
            return Err(SettingError::new(CONFIG, why));
        }
        let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        if flags && !(given(&self.oidc_issuer_url) && given(&self.oidc_client_id)) {
            let why =
                "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set";
            return Err(SettingError::new(ISSUER_URL, why));
        }
        Ok(())
    }

    /// What the control service goes by. `anonymous_flag` is whether a flag says who is let in without credentials.
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
