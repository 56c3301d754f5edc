//! `--ephemeral`: defaults that this flag changes, and flags with which it cannot be combined.

use clap::ArgMatches;

use super::error::SettingError;
use super::value_source::source;

/// Argument ids and their defaults with `--ephemeral`.
pub(super) const DEFAULTS: &[(&str, &str)] = &[
    ("secure_port", "0"),
    ("control_address", "127.0.0.1:0"),
    ("unsafe_no_fsync", "true"),
    ("shutdown_drain", "false"),
    ("database_reserve_bytes", "0"),
];

/// Returns true if `--ephemeral` is set.
pub(super) fn is_set(matches: &ArgMatches) -> bool {
    matches.get_one("ephemeral").copied().unwrap_or(false)
}

/// Rejects flags that select a store if `--ephemeral` is set.
pub(super) fn check(matches: &ArgMatches) -> Result<(), SettingError> {
    if !is_set(matches) {
        return Ok(());
    }
    let places =
        [("--data-dir", "data_dir"), ("--database-url", "database_url"), ("--etcd-servers", "etcd_servers")];
    match places.into_iter().find(|(_, id)| source(matches, id).is_some()) {
        Some((setting, _)) => {
            Err(SettingError::new("--ephemeral", format!("cannot be combined with {setting}")))
        }
        None => Ok(()),
    }
}
