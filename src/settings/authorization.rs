//! What callers may do.

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

/// Settings of authorization.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Authorization"))]
pub(crate) struct Authorization {
    /// Who decides, in order: Node (kubelets, by what their nodes run), RBAC, ABAC (--authorization-policy-file), Webhook
    /// (--authorization-webhook-config-file), AlwaysAllow (turns anonymous callers off unless --anonymous-auth says otherwise),
    /// AlwaysDeny. The first with an opinion wins; system:masters may do everything in any case [default: RBAC].
    #[arg(long, value_name = "MODES", value_enum, value_delimiter = ',')]
    pub(crate) authorization_mode: Vec<Mode>,
    /// An AuthorizationConfiguration that says who decides, in the place of --authorization-mode and --authorization-webhook-*;
    /// read again when it changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) authorization_config: Option<PathBuf>,
    /// ABAC: policies, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    pub(crate) authorization_policy_file: Option<PathBuf>,
    /// Webhook: a kubeconfig whose current context is the service to ask.
    #[arg(long, value_name = "FILE")]
    pub(crate) authorization_webhook_config_file: Option<PathBuf>,
    /// The version of SubjectAccessReviews that the webhook speaks: v1 or v1beta1 [default: v1beta1].
    #[arg(long, value_name = "VERSION")]
    pub(crate) authorization_webhook_version: Option<String>,
    /// How long a webhook's yes is remembered [default: 5m].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) authorization_webhook_cache_authorized_ttl: Option<Duration>,
    /// How long any other answer of a webhook is remembered [default: 30s].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) authorization_webhook_cache_unauthorized_ttl: Option<Duration>,
}

/// How requests are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Everybody may do everything.
    #[value(name = "AlwaysAllow")]
    AlwaysAllow,
    /// Nobody may do anything.
    #[value(name = "AlwaysDeny")]
    AlwaysDeny,
    /// By policies of a file.
    #[value(name = "ABAC")]
    Abac,
    /// As a webhook says.
    #[value(name = "Webhook")]
    Webhook,
    /// By role.
    #[value(name = "RBAC")]
    Rbac,
    /// By what the caller's node runs.
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
    /// Nobody is asked twice, everybody who is asked can be, and what says so is one of two.
    pub(super) fn check(&self) -> Result<(), SettingError> {
        self.version()?;
        if self.authorization_config.is_some() {
            let legacy = !self.authorization_mode.is_empty()
                || self.authorization_webhook_config_file.is_some()
                || self.authorization_webhook_version.is_some()
                || self.authorization_webhook_cache_authorized_ttl.is_some()
                || self.authorization_webhook_cache_unauthorized_ttl.is_some();
            let why = "can not be specified when --authorization-mode or --authorization-webhook-* flags are defined";
            return if legacy { Err(SettingError::new(CONFIG, why)) } else { Ok(()) };
        }
        let modes = &self.authorization_mode;
        let has = |mode| modes.contains(&mode);
        let (policies, webhook) = (&self.authorization_policy_file, &self.authorization_webhook_config_file);
        let again = |(at, mode): (usize, &Mode)| modes[..at].contains(mode);
        let wrong = [
            (modes.iter().enumerate().any(again), MODE, "has mode specified more than once"),
            (has(Mode::Abac) && policies.is_none(), MODE, "ABAC's authorization policy file not passed"),
            (has(Mode::Webhook) && webhook.is_none(), MODE, "Webhook's authorization config file not passed"),
            (!has(Mode::Abac) && policies.is_some(), POLICY_FILE, "cannot be specified without mode ABAC"),
            (
                !has(Mode::Webhook) && webhook.is_some(),
                WEBHOOK_FILE,
                "cannot be specified without mode Webhook",
            ),
        ];
        match wrong.into_iter().find(|(is_wrong, ..)| *is_wrong) {
            Some((_, setting, why)) => Err(SettingError::new(setting, why)),
            None => Ok(()),
        }
    }

    /// The modes, as those who decide know them. A file says them later.
    pub(crate) fn modes(&self) -> Vec<AuthorizationMode> {
        if self.authorization_config.is_none() && self.authorization_mode.is_empty() {
            return vec![AuthorizationMode::Rbac];
        }
        self.authorization_mode.iter().copied().map(AuthorizationMode::from).collect()
    }

    /// What the control service goes by.
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
        ReviewVersion::of_name(name).ok_or_else(|| {
            let why = format!(
                "unsupported webhook authorizer version {name:?}, supported versions are \"v1\", \"v1beta1\""
            );
            SettingError::new("--authorization-webhook-version", why)
        })
    }
}
