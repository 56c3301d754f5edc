//! Flags of Portico that have an effect only together with another one. Flags of kube-apiserver are accepted without it, as there.

use clap::ArgMatches;

use super::error::SettingError;
use super::given::source;

/// Flags, and the flag that each requires.
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
pub(super) fn check(matches: &ArgMatches) -> Result<(), SettingError> {
    match DEPENDENT.into_iter().find(|(flag, required)| is_set(matches, flag) && !is_set(matches, required)) {
        Some((flag, required)) => {
            Err(SettingError::new(&format!("--{flag}"), format!("requires --{required}")))
        }
        None => Ok(()),
    }
}

/// True if the flag has a value, other than `false`, from any source.
fn is_set(matches: &ArgMatches, flag: &str) -> bool {
    let id = flag.replace('-', "_");
    let is_false = || matches.get_raw(&id).into_iter().flatten().any(|value| value == "false");
    source(matches, &id).is_some() && !is_false()
}
