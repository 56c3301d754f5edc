//! `--ephemeral`: other defaults for settings that say where state is kept and how the process ends.

use clap::ArgMatches;

use super::given::source;
use super::{SettingError, Settings};

/// Settings, by their ids, with the defaults that they have with `--ephemeral`.
pub(super) const DEFAULTS: &[(&str, &str)] = &[
    ("secure_port", "0"),
    ("control_address", "127.0.0.1:0"),
    ("unsafe_no_fsync", "true"),
    ("shutdown_drain", "false"),
    ("database_reserve_bytes", "0"),
];

/// Refuses settings that say where state is kept.
pub(super) fn check(settings: &Settings, matches: &ArgMatches) -> Result<(), SettingError> {
    if !settings.process.ephemeral {
        return Ok(());
    }
    let places = [
        ("--data-dir", source(matches, "data_dir").is_some()),
        ("--database-url", settings.store.database_url.is_some()),
        ("--etcd-servers", !settings.store.etcd.etcd_servers.is_empty()),
    ];
    match places.into_iter().find(|(_, given)| *given) {
        Some((setting, _)) => {
            let why = format!("nothing is kept, and {setting} says where to keep it");
            Err(SettingError::new("--ephemeral", why))
        }
        None => Ok(()),
    }
}
