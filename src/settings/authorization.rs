//! What callers may do.

use clap::{Args, ValueEnum};
use portico_facade::AuthorizationMode;

/// Settings of authorization.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Authorization"))]
pub(crate) struct Authorization {
    /// Who decides, in order: RBAC, AlwaysAllow (turns anonymous callers off unless --anonymous-auth says otherwise),
    /// AlwaysDeny. The first with an opinion wins; system:masters may do everything in any case.
    #[arg(long, value_name = "MODES", value_enum, value_delimiter = ',', default_value = "RBAC")]
    pub(crate) authorization_mode: Vec<Mode>,
}

/// How requests are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
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
    /// The modes, as those who decide know them.
    pub(crate) fn modes(&self) -> Vec<AuthorizationMode> {
        let mode = |mode: &Mode| match mode {
            Mode::Rbac => AuthorizationMode::Rbac,
            Mode::AlwaysAllow => AuthorizationMode::AlwaysAllow,
            Mode::AlwaysDeny => AuthorizationMode::AlwaysDeny,
        };
        self.authorization_mode.iter().map(mode).collect()
    }
}
