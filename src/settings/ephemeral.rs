//! `--ephemeral`: other defaults for settings that say where state is kept and how the process ends.

use clap::ArgMatches;

use super::error::SettingError;
use super::given::source;

/// Settings, by their ids, with the defaults that they have with `--ephemeral`.
pub(super) const DEFAULTS: &[(&str, &str)] = &[
    ("secure_port", "0"),
    ("control_address", "127.0.0.1:0"),
    ("unsafe_no_fsync", "true"),
    ("shutdown_drain", "false"),
    ("database_reserve_bytes", "0"),
];

/// Whether nothing is to be kept.
pub(super) fn is_asked_for(matches: &ArgMatches) -> bool {
    matches.get_one("ephemeral").copied().unwrap_or(false)
}

/// Refuses settings that say where state is kept.
pub(super) fn check(matches: &ArgMatches) -> Result<(), SettingError> {
    if !is_asked_for(matches) {
        return Ok(());
    }
    let places =
        [("--data-dir", "data_dir"), ("--database-url", "database_url"), ("--etcd-servers", "etcd_servers")];
    match places.into_iter().find(|(_, id)| source(matches, id).is_some()) {
        Some((setting, _)) => {
            let why = format!("nothing is kept, and {setting} says where to keep it");
            Err(SettingError::new("--ephemeral", why))
        }
        None => Ok(()),
    }
}
