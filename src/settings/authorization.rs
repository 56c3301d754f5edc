//! Flags of authorization.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use portico_facade::AuthorizationMode;
use portico_server::{AuthorizationFlags, AuthorizationSettings, ReviewVersion};

use super::SettingError;
use super::values::duration;

const CONFIG: &str = "--authorization-config";
const MODE: &str = "--authorization-mode";
const POLICY_FILE: &str = "--authorization-policy-file";
const WEBHOOK_FILE: &str = "--authorization-webhook-config-file";

/// Flags of authorization.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Authorization"))]
pub(crate) struct Authorization {
    /// Authorizers in order: Node, RBAC, ABAC, Webhook, AlwaysAllow, AlwaysDeny [default: RBAC].
    ///
    /// The first authorizer that allows or denies a request decides; members of system:masters are always allowed. ABAC
    /// requires --authorization-policy-file, Webhook requires --authorization-webhook-config-file. AlwaysAllow disables
    /// anonymous requests unless --anonymous-auth is set. A facade uses its own value until it has received the value of
    /// the control service.
    #[arg(long, value_name = "MODES", value_enum, value_delimiter = ',')]
    pub(crate) authorization_mode: Vec<Mode>,
    /// AuthorizationConfiguration file that defines the chain of authorizers.
    ///
    /// The file replaces --authorization-mode and --authorization-webhook-*. It is reloaded when it changes (checked every
    /// 10 seconds, and on SIGHUP). If it is invalid, the error is logged and counted, and the previous content stays in use.
    #[arg(long, value_name = "FILE")]
    pub(crate) authorization_config: Option<PathBuf>,
    /// File of ABAC policies, one JSON object per line.
    #[arg(long, value_name = "FILE")]
    pub(crate) authorization_policy_file: Option<PathBuf>,
    /// Kubeconfig file of the authorization webhook.
    ///
    /// The current context names the webhook, which must be served over https.
    #[arg(long, value_name = "FILE")]
    pub(crate) authorization_webhook_config_file: Option<PathBuf>,
    /// Version of SubjectAccessReview sent to the webhook: v1 or v1beta1 [default: v1beta1].
    #[arg(long, value_name = "VERSION")]
    pub(crate) authorization_webhook_version: Option<String>,
    /// Time to cache "allowed" responses of the webhook [default: 5m].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) authorization_webhook_cache_authorized_ttl: Option<Duration>,
    /// Time to cache responses of the webhook other than "allowed" [default: 30s].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) authorization_webhook_cache_unauthorized_ttl: Option<Duration>,
}

/// Authorizer in `--authorization-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Allows all requests.
    #[value(name = "AlwaysAllow")]
    AlwaysAllow,
    /// Denies all requests.
    #[value(name = "AlwaysDeny")]
    AlwaysDeny,
    /// Allows requests that match attribute-based policies in a file.
    #[value(name = "ABAC")]
    Abac,
    /// Asks a webhook for each decision.
    #[value(name = "Webhook")]
    Webhook,
    /// Allows requests by role-based access control.
    #[value(name = "RBAC")]
    Rbac,
    /// Allows kubelets to access objects of their own node.
    #[value(name = "Node")]
    Node,
}

impl From<Mode> for AuthorizationMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::AlwaysAllow => Self::AlwaysAllow,
            Mode::AlwaysDeny => Self::AlwaysDeny,
            Mode::Abac => Self::Abac,
            Mode::Webhook => Self::Webhook,
            Mode::Rbac => Self::Rbac,
            Mode::Node => Self::Node,
        }
    }
}

impl Authorization {
    /// Rejects duplicate modes, modes without their file, and `--authorization-config` together with the flags that it replaces.
    pub(super) fn check(&self) -> Result<(), SettingError> {
        self.version()?;
        if self.authorization_config.is_some() {
            let legacy = !self.authorization_mode.is_empty()
                || self.authorization_webhook_config_file.is_some()
                || self.authorization_webhook_version.is_some()
                || self.authorization_webhook_cache_authorized_ttl.is_some()
                || self.authorization_webhook_cache_unauthorized_ttl.is_some();
            let message = "can not be specified when --authorization-mode or --authorization-webhook-* flags are defined";
            return if legacy { Err(SettingError::new(CONFIG, message)) } else { Ok(()) };
        }
        let modes = &self.authorization_mode;
        let has = |mode| modes.contains(&mode);
        let (policies, webhook) = (&self.authorization_policy_file, &self.authorization_webhook_config_file);
        let is_repeated = |(at, mode): (usize, &Mode)| modes[..at].contains(mode);
        let violations = [
            (modes.iter().enumerate().any(is_repeated), MODE, "has mode specified more than once"),
            (has(Mode::Abac) && policies.is_none(), MODE, "ABAC's authorization policy file not passed"),
            (has(Mode::Webhook) && webhook.is_none(), MODE, "Webhook's authorization config file not passed"),
            (!has(Mode::Abac) && policies.is_some(), POLICY_FILE, "cannot be specified without mode ABAC"),
            (
                !has(Mode::Webhook) && webhook.is_some(),
                WEBHOOK_FILE,
                "cannot be specified without mode Webhook",
            ),
        ];
        match violations.into_iter().find(|(is_violated, ..)| *is_violated) {
            Some((_, setting, message)) => Err(SettingError::new(setting, message)),
            None => Ok(()),
        }
    }

    /// Returns the modes in order, or an empty list if `--authorization-config` defines the authorizers.
    pub(crate) fn modes(&self) -> Vec<AuthorizationMode> {
        if self.authorization_config.is_none() && self.authorization_mode.is_empty() {
            return vec![AuthorizationMode::Rbac];
        }
        self.authorization_mode.iter().copied().map(AuthorizationMode::from).collect()
    }

    /// Returns the settings for the control service.
    pub(crate) fn server(&self) -> Result<AuthorizationSettings, SettingError> {
        let policy_file = self.authorization_policy_file.clone();
        if let Some(path) = self.authorization_config.clone() {
            return Ok(AuthorizationSettings::File { path, policy_file });
        }
        let ttl = |ttl: Option<Duration>, default| ttl.unwrap_or(Duration::from_secs(default));
        Ok(AuthorizationSettings::Flags(AuthorizationFlags {
            modes: self.modes(),
            policy_file,
            webhook_config_file: self.authorization_webhook_config_file.clone(),
            webhook_version: self.version()?,
            authorized_ttl: ttl(self.authorization_webhook_cache_authorized_ttl, 5 * 60),
            unauthorized_ttl: ttl(self.authorization_webhook_cache_unauthorized_ttl, 30),
        }))
    }

    fn version(&self) -> Result<ReviewVersion, SettingError> {
        let name = self.authorization_webhook_version.as_deref().unwrap_or("v1beta1");
        ReviewVersion::from_name(name).ok_or_else(|| {
            let message = format!(
                "unsupported webhook authorizer version {name:?}, supported versions are \"v1\", \"v1beta1\""
            );
            SettingError::new("--authorization-webhook-version", message)
        })
    }
}
