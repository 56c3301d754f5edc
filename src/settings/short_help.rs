//! The flags that `-h` lists; `--help` lists all.

use clap::{Arg, Command};

const SHOWN: [&str; 29] = [
    "help",
    "version",
    "config",
    "data-dir",
    "ephemeral",
    "v",
    "logging-format",
    "console",
    "bind-address",
    "secure-port",
    "tls-cert-file",
    "tls-private-key-file",
    "control-address",
    "control-kubeconfig",
    "controllers",
    "client-ca-file",
    "token-auth-file",
    "authorization-mode",
    "audit-log-path",
    "service-account-issuer",
    "enable-aggregator-routing",
    "database-url",
    "etcd-servers",
    "history-retention",
    "service-cluster-ip-range",
    "feature-gates",
    "runtime-config",
    "enable-admission-plugins",
    "manifests",
];

/// Leaves the other flags out of the short help.
pub(super) fn with_short_help(command: Command) -> Command {
    let is_shown = |arg: &Arg| arg.get_long().is_none_or(|long| SHOWN.contains(&long));
    command.mut_args(|arg| {
        let is_hidden = !is_shown(&arg);
        arg.hide_short_help(is_hidden)
    })
}

#[cfg(test)]
mod tests {
    use crate::command_tree::portico;

    #[test]
    fn short_help_lists_the_flags_that_most_users_need() {
        let help = portico().render_help().to_string();
        assert!(help.lines().count() < 120, "{help}");
        for flag in super::SHOWN {
            assert!(help.contains(&format!("--{flag}")), "{flag}: {help}");
        }
        assert!(portico().render_long_help().to_string().contains("--write-queue"));
    }
}
