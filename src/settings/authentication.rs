//! Who is trusted: client certificates, tokens, front proxies, anonymous callers.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use portico_machinery::FrontProxy;
use portico_server::{AuthenticationSettings, ReviewVersion, TokenWebhookSettings};

use super::SettingError;
use super::oidc::Oidc;
use super::values::duration;

/// Settings of authentication.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Authentication"))]
pub(crate) struct Authentication {
    /// CAs whose client certificates name users (CN) and groups (O). The internal CA is always trusted besides.
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,
    /// A CSV file of bearer tokens: token,user,uid[,"group1,group2"].
    #[arg(long, value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,
    /// A kubeconfig whose current context is a service that knows bearer tokens, by TokenReviews.
    #[arg(long, value_name = "FILE")]
    pub(crate) authentication_token_webhook_config_file: Option<PathBuf>,
    /// The version of TokenReviews that the webhook speaks: v1 or v1beta1.
    #[arg(long, value_name = "VERSION", default_value = "v1beta1")]
    pub(crate) authentication_token_webhook_version: String,
    /// How long the webhook's answers are remembered.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2m")]
    pub(crate) authentication_token_webhook_cache_ttl: Duration,
    /// Let callers without credentials in as system:anonymous. Off when everything is allowed anyway.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) anonymous_auth: Option<bool>,
    #[command(flatten)]
    pub(crate) oidc: Oidc,
    /// CAs of front proxies, which name users in headers.
    #[arg(long, value_name = "FILE")]
    pub(crate) requestheader_client_ca_file: Option<PathBuf>,
    /// Common names that a front proxy's certificate may have; empty = any.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) requestheader_allowed_names: Vec<String>,
    /// Headers with the user's name, in order of preference.
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub(crate) requestheader_username_headers: Vec<String>,
    /// Headers with the user's uid.
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub(crate) requestheader_uid_headers: Vec<String>,
    /// Headers with the user's groups.
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub(crate) requestheader_group_headers: Vec<String>,
    /// Prefixes of headers with extra facts.
    #[arg(long, value_name = "PREFIXES", value_delimiter = ',')]
    pub(crate) requestheader_extra_headers_prefix: Vec<String>,
}

impl Authentication {
    /// Front proxies, when there may be any.
    pub(crate) fn front_proxy(&self) -> Option<FrontProxy> {
        Some(FrontProxy {
            client_ca_file: self.requestheader_client_ca_file.clone()?,
            allowed_names: self.requestheader_allowed_names.clone(),
            username_headers: self.requestheader_username_headers.clone(),
            uid_headers: self.requestheader_uid_headers.clone(),
            group_headers: self.requestheader_group_headers.clone(),
            extra_headers_prefix: self.requestheader_extra_headers_prefix.clone(),
        })
    }

    /// Whether any flag says who front proxies are.
    pub(super) fn names_front_proxies(&self) -> bool {
        let lists = [
            &self.requestheader_allowed_names,
            &self.requestheader_username_headers,
            &self.requestheader_uid_headers,
            &self.requestheader_group_headers,
            &self.requestheader_extra_headers_prefix,
        ];
        self.requestheader_client_ca_file.is_some() || lists.iter().any(|names| !names.is_empty())
    }

    /// The webhook that knows tokens, when there is one.
    pub(crate) fn token_webhook(&self) -> Result<Option<TokenWebhookSettings>, SettingError> {
        let name = &self.authentication_token_webhook_version;
        let version = ReviewVersion::of_name(name).ok_or_else(|| {
            let why = format!(
                "unsupported authentication webhook version {name:?}, supported versions are \"v1\", \"v1beta1\""
            );
            SettingError::new("--authentication-token-webhook-version", why)
        })?;
        let cache_ttl = self.authentication_token_webhook_cache_ttl;
        let file = self.authentication_token_webhook_config_file.clone();
        Ok(file.map(|config_file| TokenWebhookSettings { config_file, version, cache_ttl }))
    }

    /// Who else issues tokens.
    pub(crate) fn issuers(&self) -> AuthenticationSettings {
        self.oidc.settings(self.anonymous_auth.is_some())
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        self.token_webhook()?;
        self.oidc.check()?;
        let lists = [
            ("--requestheader-username-headers", &self.requestheader_username_headers),
            ("--requestheader-uid-headers", &self.requestheader_uid_headers),
            ("--requestheader-group-headers", &self.requestheader_group_headers),
            ("--requestheader-extra-headers-prefix", &self.requestheader_extra_headers_prefix),
        ];
        for (setting, names) in lists {
            for name in names {
                if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
                    return Err(SettingError::new(setting, format!("{name:?} is no header name")));
                }
            }
        }
        if self.requestheader_client_ca_file.is_some() && self.requestheader_username_headers.is_empty() {
            let message = "is required with --requestheader-client-ca-file";
            return Err(SettingError::new("--requestheader-username-headers", message));
        }
        Ok(())
    }
}
