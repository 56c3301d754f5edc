//! Flags of authentication: client certificates, tokens, front proxies, anonymous requests.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use portico_machinery::FrontProxy;
use portico_server::{AuthenticationSettings, ReviewVersion, TokenWebhookSettings};

use super::SettingError;
use super::oidc::Oidc;
use super::values::duration;

/// Flags of authentication.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Authentication"))]
pub(crate) struct Authentication {
    /// CA certificates that authenticate client certificates (PEM).
    ///
    /// The common name of a certificate is the user name, its organizations are the groups. Certificates of the internal CA
    /// are always accepted.
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,
    /// CSV file of static bearer tokens: token,user,uid[,"group1,group2"].
    #[arg(long, value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,
    /// Kubeconfig file of a webhook that authenticates bearer tokens with TokenReviews.
    ///
    /// The current context names the webhook, which must be served over https.
    #[arg(long, value_name = "FILE")]
    pub(crate) authentication_token_webhook_config_file: Option<PathBuf>,
    /// Version of TokenReview sent to the webhook: v1 or v1beta1.
    #[arg(long, value_name = "VERSION", default_value = "v1beta1")]
    pub(crate) authentication_token_webhook_version: String,
    /// Time to cache responses of the token webhook; failures are not cached.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2m")]
    pub(crate) authentication_token_webhook_cache_ttl: Duration,
    /// Allow requests without credentials, as user system:anonymous and group system:unauthenticated.
    ///
    /// Defaults to `true`, and to `false` when --authorization-mode is AlwaysAllow.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) anonymous_auth: Option<bool>,
    #[command(flatten)]
    pub(crate) oidc: Oidc,
    /// CA certificates of front proxies that are trusted to name users in headers (PEM).
    ///
    /// Requires --requestheader-username-headers.
    #[arg(long, value_name = "FILE")]
    pub(crate) requestheader_client_ca_file: Option<PathBuf>,
    /// Common names accepted in certificates of front proxies; empty = any.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) requestheader_allowed_names: Vec<String>,
    /// Headers in which front proxies send the user name, in order of preference.
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub(crate) requestheader_username_headers: Vec<String>,
    /// Headers in which front proxies send the user's UID, in order of preference.
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub(crate) requestheader_uid_headers: Vec<String>,
    /// Headers in which front proxies send the user's groups.
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub(crate) requestheader_group_headers: Vec<String>,
    /// Prefixes of the headers in which front proxies send extra attributes of the user.
    #[arg(long, value_name = "PREFIXES", value_delimiter = ',')]
    pub(crate) requestheader_extra_headers_prefix: Vec<String>,
}

impl Authentication {
    /// Returns the front proxies to trust, if configured.
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

    /// Returns true if any flag configures front proxies.
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

    /// Returns the settings of the token webhook, if configured.
    pub(crate) fn token_webhook(&self) -> Result<Option<TokenWebhookSettings>, SettingError> {
        let name = &self.authentication_token_webhook_version;
        let version = ReviewVersion::from_name(name).ok_or_else(|| {
            let message = format!(
                "unsupported authentication webhook version {name:?}, supported versions are \"v1\", \"v1beta1\""
            );
            SettingError::new("--authentication-token-webhook-version", message)
        })?;
        let cache_ttl = self.authentication_token_webhook_cache_ttl;
        let file = self.authentication_token_webhook_config_file.clone();
        Ok(file.map(|config_file| TokenWebhookSettings { config_file, version, cache_ttl }))
    }

    /// Returns the settings for issuers of JSON Web Tokens.
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
                    return Err(SettingError::new(setting, format!("{name:?} is not a valid header name")));
                }
            }
        }
        if self.requestheader_client_ca_file.is_some() && self.requestheader_username_headers.is_empty() {
            let message = "required by --requestheader-client-ca-file; for example X-Remote-User";
            return Err(SettingError::new("--requestheader-username-headers", message));
        }
        Ok(())
    }
}
