//! Effective values of flags for `/flagz`, formatted as upstream's `flag.Value`.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use portico_gostd::time::format_duration;
use portico_kit::url_password::without_password;

use super::foreign_flags::FOREIGN_FLAGS;

/// Flags that upstream formats without brackets, as a map or a single text.
const UNBRACKETED: [&str; 3] = ["feature-gates", "runtime-config", "service-cluster-ip-range"];

/// Returns the value of each flag. Flags without effect are included only if they were set.
pub(super) fn flag_values(command: &Command, matches: &ArgMatches) -> BTreeMap<String, String> {
    let foreign = |arg: &Arg| FOREIGN_FLAGS.iter().any(|flag| Some(flag.name) == arg.get_long());
    let arguments =
        command.get_arguments().filter(|arg| !matches!(arg.get_id().as_str(), "help" | "version"));
    arguments
        .filter_map(|arg| Some((arg, arg.get_long()?)))
        .filter(|(arg, _)| !foreign(arg) || is_set(arg, matches))
        .map(|(arg, name)| (name.to_owned(), value(arg, name, matches)))
        .collect()
}

fn is_set(arg: &Arg, matches: &ArgMatches) -> bool {
    matches.value_source(arg.get_id().as_str()).is_some_and(|source| source != ValueSource::DefaultValue)
}

fn value(arg: &Arg, name: &str, matches: &ArgMatches) -> String {
    let id = arg.get_id().as_str();
    if let Ok(Some(duration)) = matches.try_get_one::<Duration>(id) {
        return format_duration(*duration);
    }
    let texts: Vec<_> =
        matches.get_raw(id).into_iter().flatten().map(|text| text.to_string_lossy().into_owned()).collect();
    let is_list = matches!(arg.get_action(), ArgAction::Append) || arg.get_value_delimiter().is_some();
    if name == "database-url" {
        return texts.iter().map(|url| without_password(url)).collect();
    }
    match is_list && !UNBRACKETED.contains(&name) {
        true => format!("[{}]", texts.join(",")),
        false => texts.join(","),
    }
}
