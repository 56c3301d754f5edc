//! Facts about the program, as `portico reference` prints them.

use std::process::Command as Process;

use serde::Deserialize;

use crate::{binary, tools};

/// Everything that the program reports.
#[derive(Deserialize)]
pub(super) struct Facts {
    /// The root of the command tree.
    pub(super) command: Command,
}

/// A command.
#[derive(Deserialize)]
pub(super) struct Command {
    pub(super) name: String,
    pub(super) about: Option<String>,
    pub(super) long_about: Option<String>,
    pub(super) usage: String,
    pub(super) hidden: bool,
    pub(super) arguments: Vec<Argument>,
    pub(super) commands: Vec<Command>,
}

/// A flag or a positional argument.
#[derive(Deserialize)]
pub(super) struct Argument {
    pub(super) long: Option<String>,
    pub(super) short: Option<char>,
    /// Environment variable.
    pub(super) env: Option<String>,
    pub(super) value_name: Option<String>,
    pub(super) defaults: Vec<String>,
    pub(super) possible_values: Vec<PossibleValue>,
    pub(super) heading: Option<String>,
    /// First paragraph of the help text.
    pub(super) help: Option<String>,
    /// Whole help text, if it has more than one paragraph.
    pub(super) long_help: Option<String>,
    pub(super) takes_value: bool,
    pub(super) repeatable: bool,
    pub(super) required: bool,
    pub(super) global: bool,
    pub(super) hidden: bool,
}

/// A value that an argument accepts.
#[derive(Deserialize)]
pub(super) struct PossibleValue {
    pub(super) name: String,
    pub(super) help: Option<String>,
}

impl Facts {
    /// Facts of the binary under test.
    pub(super) fn of_the_program() -> Self {
        // Without the environment: defaults do not depend on it.
        let output = tools::output(Process::new(binary()).arg("reference").env_clear());
        assert!(output.status.success(), "portico reference: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}
