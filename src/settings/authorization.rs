//! What callers may do.

use clap::{Args, ValueEnum};
use portico_facade::AuthorizationMode;

use super::SettingError;

/// Settings of authorization.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Authorization"))]
pub(crate) struct Authorization {
    /// Who decides, in order: Node (kubelets, by what their nodes run), RBAC, AlwaysAllow (turns anonymous callers off unless --anonymous-auth says otherwise),
    /// AlwaysDeny. The first with an opinion wins; system:masters may do everything in any case.
    #[arg(long, value_name = "MODES", value_enum, value_delimiter = ',', default_value = "RBAC")]
    pub(crate) authorization_mode: Vec<Mode>,
}

/// How requests are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// By what the caller's node runs.
    #[value(name = "Node")]
    Node,
    /// By role.
    #[value(name = "RBAC")]
    Rbac,
    /// Everybody may do everything.
    #[value(name = "AlwaysAllow")]
    AlwaysAllow,
    /// Nobody may do anything.
    #[value(name = "AlwaysDeny")]
    AlwaysDeny,
}

impl Authorization {
    /// Nobody is asked twice.
    pub(super) fn check(&self) -> Result<(), SettingError> {
        let modes = &self.authorization_mode;
        let again = |(at, mode): (usize, &Mode)| modes[..at].contains(mode);
        if modes.iter().enumerate().any(again) {
            return Err(SettingError::new("--authorization-mode", "a mode stands there more than once"));
        }
        Ok(())
    }

    /// The modes, as those who decide know them.
    pub(crate) fn modes(&self) -> Vec<AuthorizationMode> {
        let mode = |mode: &Mode| match mode {
            Mode::Node => AuthorizationMode::Node,
            Mode::Rbac => AuthorizationMode::Rbac,
            Mode::AlwaysAllow => AuthorizationMode::AlwaysAllow,
            Mode::AlwaysDeny => AuthorizationMode::AlwaysDeny,
        };
        self.authorization_mode.iter().map(mode).collect()
    }
}
