//! Flags of kube-apiserver that have no meaning here: each is named with what comes of giving it.
//!
//! Giving one loses nothing, and is warned of, or it asks for what is not here, and is refused with one line that says why.

use clap::builder::OsStr;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};
use portico_kit::url_password::without_secrets;

use super::SettingError;

/// A flag, what comes of giving it, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForeignFlag {
    /// Its name, without dashes.
    pub(crate) name: &'static str,
    /// Whether it may stand without a value.
    is_switch: bool,
    /// The values that are taken.
    taken: Taken,
    /// Why there is nothing to set.
    pub(crate) why: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// All: whoever gives it loses nothing.
    Any,
    /// These, which say what is so anyway.
    Only(&'static [&'static str]),
    /// None.
    Nothing,
}

const fn ignored(name: &'static str, why: &'static str) -> ForeignFlag {
    ForeignFlag { name, is_switch: false, taken: Taken::Any, why }
}

const fn refused(name: &'static str, why: &'static str) -> ForeignFlag {
    ForeignFlag { name, is_switch: false, taken: Taken::Nothing, why }
}

const fn only(name: &'static str, values: &'static [&'static str], why: &'static str) -> ForeignFlag {
    ForeignFlag { name, is_switch: false, taken: Taken::Only(values), why }
}

const fn switch(name: &'static str, taken: Taken, why: &'static str) -> ForeignFlag {
    ForeignFlag { name, is_switch: true, taken, why }
}

const COUNTED: &str =
    "sizes and counts are looked at every --compaction-interval, or when they are asked for";
const ONE_TIMEOUT: &str = "--database-statement-timeout is the time of every request to etcd";
const LOG_AT_ONCE: &str = "log lines are written at once, to one stream";
const OFF: Taken = Taken::Only(&["false"]);

/// All of them, by name.
pub(crate) const FOREIGN_FLAGS: &[ForeignFlag] = &[
    switch("contention-profiling", OFF, "locks are not profiled"),
    ignored(
        "delete-collection-workers",
        "objects of one request are deleted one after another, in few transactions",
    ),
    switch(
        "enable-garbage-collector",
        Taken::Only(&["true"]),
        "--controllers=-garbage-collector-controller turns it off",
    ),
    switch("enable-logs-handler", OFF, "/logs, which is deprecated, is not served"),
    only(
        "endpoint-reconciler-type",
        &["lease"],
        "the server keeps the endpoints of default/kubernetes itself",
    ),
    ignored("etcd-count-metric-poll-period", COUNTED),
    ignored("etcd-db-metric-poll-interval", COUNTED),
    ignored("etcd-healthcheck-timeout", ONE_TIMEOUT),
    ignored("etcd-readycheck-timeout", ONE_TIMEOUT),
    refused("etcd-servers-overrides", "all resources are in one store (--etcd-servers)"),
    only("kubernetes-service-node-port", &["0"], "the Service default/kubernetes has no node port"),
    ignored("log-flush-frequency", LOG_AT_ONCE),
    ignored("log-json-info-buffer-size", LOG_AT_ONCE),
    switch("log-json-split-stream", OFF, LOG_AT_ONCE),
    ignored("log-text-info-buffer-size", LOG_AT_ONCE),
    switch("log-text-split-stream", OFF, LOG_AT_ONCE),
    switch("permit-address-sharing", Taken::Any, "SO_REUSEADDR is always set"),
    only("storage-backend", &["etcd3"], "--etcd-servers and --database-url choose the store"),
    ignored("storage-initialization-timeout", "storage is ready, or its failure ends the start"),
    ignored("storage-media-type", "etcd holds what kube-apiserver stores by default, other stores hold JSON"),
    refused("vmodule", "--v takes levels for modules, as in portico_store=debug"),
    switch("watch-cache", Taken::Only(&["true"]), "every resource that is read is cached"),
    ignored("watch-cache-sizes", "the history of watches is bounded in bytes for all resources together"),
];

impl ForeignFlag {
    /// The flag as an argument that --help does not show.
    fn argument(&self) -> Arg {
        let argument = Arg::new(self.name).long(self.name).hide(true).action(ArgAction::Append);
        match self.is_switch {
            true => argument.num_args(0..=1).require_equals(true).default_missing_value(OsStr::from("true")),
            false => argument.num_args(1),
        }
    }

    /// Whether a value may be given.
    fn takes(&self, value: &str) -> bool {
        match self.taken {
            Taken::Any => true,
            Taken::Only(values) => values.contains(&value),
            Taken::Nothing => false,
        }
    }

    /// What comes of giving it, for operators.
    #[cfg(test)]
    pub(super) fn outcome(&self) -> String {
        match self.taken {
            Taken::Any => "ignored".to_owned(),
            Taken::Only(values) => {
                format!(
                    "only {}",
                    values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
                )
            }
            Taken::Nothing => "refused".to_owned(),
        }
    }
}

/// The command with all of them.
pub(super) fn with_foreign_flags(command: clap::Command) -> clap::Command {
    command.args(FOREIGN_FLAGS.iter().map(ForeignFlag::argument))
}

/// Those that were given and are ignored.
///
/// # Errors
/// One was given that cannot be.
pub(super) fn given(matches: &ArgMatches) -> Result<Vec<ForeignFlag>, SettingError> {
    let mut ignored = Vec::new();
    for flag in FOREIGN_FLAGS.iter().copied() {
        let chosen = |matches: &&ArgMatches| {
            matches.value_source(flag.name).is_some_and(|source| source != ValueSource::DefaultValue)
        };
        let below = matches.subcommand().map(|(_, matches)| matches);
        let Some(matches) = [Some(matches), below].into_iter().flatten().find(chosen) else { continue };
        let values = matches.get_many::<String>(flag.name).into_iter().flatten();
        for value in values {
            if !flag.takes(value) {
                let setting = format!("--{}", flag.name);
                let value = without_secrets(value);
                return Err(SettingError::new(
                    &setting,
                    format!("{value:?} cannot be given here: {}", flag.why),
                ));
            }
        }
        if flag.taken == Taken::Any {
            ignored.push(flag);
        }
    }
    Ok(ignored)
}
