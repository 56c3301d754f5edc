//! Flags of kube-apiserver that have no effect in Portico.
//!
//! A flag that can be ignored safely is accepted with a warning. A flag that requires a missing feature is rejected.

use clap::builder::OsStr;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};
use portico_kit::url_password::without_secrets;

use super::SettingError;

/// Flag of kube-apiserver that has no effect in Portico.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForeignFlag {
    /// Name without dashes.
    pub(crate) name: &'static str,
    /// True if the value is optional.
    is_switch: bool,
    /// Accepted values.
    accepted: AcceptedValues,
    /// Reason why the flag has no effect.
    pub(crate) reason: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AcceptedValues {
    /// Any value, with a warning.
    Any,
    /// Only these values, which describe what Portico does in any case.
    Only(&'static [&'static str]),
    /// No value: the flag is rejected.
    Refused,
}

const fn ignored(name: &'static str, reason: &'static str) -> ForeignFlag {
    ForeignFlag { name, is_switch: false, accepted: AcceptedValues::Any, reason }
}

const fn refused(name: &'static str, reason: &'static str) -> ForeignFlag {
    ForeignFlag { name, is_switch: false, accepted: AcceptedValues::Refused, reason }
}

const fn only(name: &'static str, values: &'static [&'static str], reason: &'static str) -> ForeignFlag {
    ForeignFlag { name, is_switch: false, accepted: AcceptedValues::Only(values), reason }
}

const fn switch(name: &'static str, accepted: AcceptedValues, reason: &'static str) -> ForeignFlag {
    ForeignFlag { name, is_switch: true, accepted, reason }
}

const COUNTED: &str = "sizes and counts are collected every --compaction-interval and on request";
const ONE_TIMEOUT: &str = "--database-statement-timeout applies to every request to etcd";
const UNBUFFERED_LOG: &str = "log lines are written to one stream without a buffer";
const OFF: AcceptedValues = AcceptedValues::Only(&["false"]);

/// All flags without effect, sorted by name.
pub(crate) const FOREIGN_FLAGS: &[ForeignFlag] = &[
    switch("contention-profiling", OFF, "lock contention is not profiled"),
    ignored("delete-collection-workers", "objects are deleted sequentially, many per transaction"),
    switch(
        "enable-garbage-collector",
        AcceptedValues::Only(&["true"]),
        "use --controllers=*,-garbage-collector-controller to disable it",
    ),
    switch("enable-logs-handler", OFF, "the deprecated path /logs is not served"),
    only(
        "endpoint-reconciler-type",
        &["lease"],
        "the server maintains the endpoints of default/kubernetes itself",
    ),
    ignored("etcd-count-metric-poll-period", COUNTED),
    ignored("etcd-db-metric-poll-interval", COUNTED),
    ignored("etcd-healthcheck-timeout", ONE_TIMEOUT),
    ignored("etcd-readycheck-timeout", ONE_TIMEOUT),
    refused("etcd-servers-overrides", "all resources are in one store; use --etcd-servers"),
    only("kubernetes-service-node-port", &["0"], "the Service default/kubernetes has no node port"),
    ignored("log-flush-frequency", UNBUFFERED_LOG),
    ignored("log-json-info-buffer-size", UNBUFFERED_LOG),
    switch("log-json-split-stream", OFF, UNBUFFERED_LOG),
    ignored("log-text-info-buffer-size", UNBUFFERED_LOG),
    switch("log-text-split-stream", OFF, UNBUFFERED_LOG),
    switch("permit-address-sharing", AcceptedValues::Any, "SO_REUSEADDR is always set"),
    only("storage-backend", &["etcd3"], "--etcd-servers and --database-url select the store"),
    ignored(
        "storage-initialization-timeout",
        "start-up fails if the store cannot be opened; see --database-connect-timeout",
    ),
    ignored(
        "storage-media-type",
        "values in etcd have the default encodings of kube-apiserver, other stores use JSON",
    ),
    refused("vmodule", "use --v with levels per module, for example --v=info,portico_store=debug"),
    switch("watch-cache", AcceptedValues::Only(&["true"]), "all resources are cached"),
    ignored(
        "watch-cache-sizes",
        "the watch history has one limit in bytes for all resources, --history-max-bytes",
    ),
];

impl ForeignFlag {
    /// Returns the flag as a hidden argument.
    fn argument(&self) -> Arg {
        let argument = Arg::new(self.name).long(self.name).hide(true).action(ArgAction::Append);
        match self.is_switch {
            true => argument.num_args(0..=1).require_equals(true).default_missing_value(OsStr::from("true")),
            false => argument.num_args(1),
        }
    }

    /// Returns true if the value is accepted.
    fn accepts(&self, value: &str) -> bool {
        match self.accepted {
            AcceptedValues::Any => true,
            AcceptedValues::Only(values) => values.contains(&value),
            AcceptedValues::Refused => false,
        }
    }

    /// Returns the accepted values for the reference: `ignored`, `refused`, or `only` followed by a list.
    pub(crate) fn outcome(&self) -> String {
        match self.accepted {
            AcceptedValues::Any => "ignored".to_owned(),
            AcceptedValues::Only(values) => {
                format!(
                    "only {}",
                    values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
                )
            }
            AcceptedValues::Refused => "refused".to_owned(),
        }
    }
}

/// Adds all flags without effect to the command.
pub(super) fn with_foreign_flags(command: clap::Command) -> clap::Command {
    command.args(FOREIGN_FLAGS.iter().map(ForeignFlag::argument))
}

/// Returns the flags that were set and are ignored.
///
/// # Errors
/// Returns an error if a flag was set to a value that is not accepted.
pub(super) fn ignored_flags(matches: &ArgMatches) -> Result<Vec<ForeignFlag>, SettingError> {
    let mut ignored = Vec::new();
    for flag in FOREIGN_FLAGS.iter().copied() {
        let is_set = |matches: &&ArgMatches| {
            matches.value_source(flag.name).is_some_and(|source| source != ValueSource::DefaultValue)
        };
        let submatches = matches.subcommand().map(|(_, matches)| matches);
        let Some(matches) = [Some(matches), submatches].into_iter().flatten().find(is_set) else { continue };
        let values = matches.get_many::<String>(flag.name).into_iter().flatten();
        for value in values {
            if !flag.accepts(value) {
                let setting = format!("--{}", flag.name);
                let value = without_secrets(value);
                return Err(SettingError::new(
                    &setting,
                    format!("{value:?} is not supported: {}", flag.reason),
                ));
            }
        }
        if flag.accepted == AcceptedValues::Any {
            ignored.push(flag);
        }
    }
    Ok(ignored)
}
