//! YAML file of `--config`. Keys are names of flags, lists are YAML lists, and an unknown key is an error.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use clap::ArgMatches;
use clap::parser::ValueSource;
use serde::Deserialize;

use portico_gostd::os::error_text;
use portico_kit::config_file;

use super::error::SettingError;
use super::value_source::source;
use crate::usage_error::UsageError;

/// Value in the file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Value>),
    Null(()),
}

impl Value {
    /// Returns the values of the flag, one for each time that the flag is to be given.
    fn occurrences(&self) -> Vec<String> {
        match self {
            Self::Bool(b) => vec![b.to_string()],
            Self::Integer(n) => vec![n.to_string()],
            Self::Float(n) => vec![n.to_string()],
            Self::Text(text) => vec![text.clone()],
            Self::List(list) => list.iter().flat_map(Self::occurrences).collect(),
            Self::Null(()) => Vec::new(),
        }
    }
}

/// Reads the file, and returns arguments for the keys that no flag or environment variable sets.
pub(super) fn arguments(
    path: &Path,
    command: &clap::Command,
    matches: &ArgMatches,
) -> Result<Vec<OsString>, SettingError> {
    let invalid = |message: String| SettingError::new("--config", format!("{}: {message}", path.display()));
    let text = config_file::read_text(path).map_err(|e| invalid(error_text(&e)))?;
    let values: BTreeMap<String, Value> =
        if text.trim().is_empty() { BTreeMap::new() } else { parse(&text).map_err(invalid)? };
    let mut arguments = Vec::new();
    for (key, value) in &values {
        let argument = command.get_arguments().find(|a| a.get_long() == Some(key));
        let Some(argument) = argument.filter(|_| !matches!(key.as_str(), "config" | "help")) else {
            let error = invalid(format!("unknown key {key:?}; keys are flag names without dashes"));
            return Err(error.with_hint(similar_key(command, key)));
        };
        let is_overridden = matches!(
            source(matches, argument.get_id().as_str()),
            Some(ValueSource::CommandLine | ValueSource::EnvVariable)
        );
        if !is_overridden {
            arguments.extend(value.occurrences().into_iter().map(|v| OsString::from(format!("--{key}={v}"))));
        }
    }
    Ok(arguments)
}

/// Returns the question whether the most similar key was meant, if there is one.
fn similar_key(command: &clap::Command, key: &str) -> Option<String> {
    let error = command.clone().try_get_matches_from(["portico", &format!("--{key}")]).err()?;
    UsageError::from_clap(&error).hint.map(|hint| hint.replace("--", ""))
}

fn parse(text: &str) -> Result<BTreeMap<String, Value>, String> {
    serde_saphyr::from_str(text).map_err(|e| e.to_string().lines().next().unwrap_or_default().to_owned())
}
