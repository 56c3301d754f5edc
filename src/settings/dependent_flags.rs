//! Flags of Portico that require another flag. Flags that kube-apiserver has, too, are not checked, because kube-apiserver accepts them
//! without the other flag.

use clap::{ArgMatches, Command};

use super::error::SettingError;
use super::value_source::source;

/// Flags, each with the flag that it requires.
const DEPENDENT: [(&str, &str); 10] = [
    ("database-password-file", "database-url"),
    ("database-read-connections", "database-url"),
    ("database-transaction-pooler", "database-url"),
    ("database-poll-interval", "database-url"),
    ("manifests-prune", "manifests"),
    ("manifests-look-period", "manifests"),
    ("manifests-resync-period", "manifests"),
    ("manifests-max-files", "manifests"),
    ("manifests-max-bytes", "manifests"),
    ("test-faults", "ephemeral"),
];

/// Rejects a flag whose required flag is missing.
pub(super) fn check(command: &Command, matches: &ArgMatches) -> Result<(), SettingError> {
    let is_set = |flag| is_set(command, matches, flag);
    match DEPENDENT.into_iter().find(|(flag, required)| is_set(flag) && !is_set(required)) {
        Some((flag, required)) => {
            Err(SettingError::new(&format!("--{flag}"), format!("requires --{required}")))
        }
        None => Ok(()),
    }
}

/// Returns true if any source sets the flag to a value other than its default.
fn is_set(command: &Command, matches: &ArgMatches, flag: &str) -> bool {
    let Some(argument) = command.get_arguments().find(|argument| argument.get_long() == Some(flag)) else {
        return false;
    };
    let id = argument.get_id().as_str();
    let values = matches.get_raw(id).into_iter().flatten();
    source(matches, id).is_some()
        && !values.eq(argument.get_default_values().iter().map(|value| value.as_os_str()))
}
