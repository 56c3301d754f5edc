//! What callers may do.

use clap::{Args, ValueEnum};

/// Settings of authorization.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Authorization"))]
pub(crate) struct Authorization {
    /// RBAC (until its kinds exist: system:masters all, the authenticated discovery and health, others health and
    /// version) or AlwaysAllow (turns anonymous callers off unless --anonymous-auth says otherwise).
    #[arg(long, value_name = "MODE", value_enum, default_value = "RBAC")]
    pub(crate) authorization_mode: Mode,
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
}
