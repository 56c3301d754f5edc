//! Facts about the program, as `portico reference` prints them.

use std::process::Command as Process;

use serde::Deserialize;

use crate::{binary, tools};

/// Beginning of a default at the end of a line of help, as clap writes it.
const DEFAULT: &str = " [default: ";

/// Everything that the program reports.
#[derive(Deserialize)]
pub(super) struct Facts {
    /// The root of the command tree.
    pub(super) command: Command,
    pub(super) foreign_flags: Vec<ForeignFlag>,
    pub(super) controllers: Vec<Controller>,
    pub(super) admission_plugins: Vec<AdmissionPlugin>,
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
    pub(super) value_name: Option<String>,
    pub(super) defaults: Vec<String>,
    pub(super) possible_values: Vec<PossibleValue>,
    pub(super) heading: Option<String>,
    /// First paragraph of the help text.
    pub(super) help: Option<String>,
    /// Whole help text, if it has more than one paragraph.
    pub(super) long_help: Option<String>,
    pub(super) repeatable: bool,
    pub(super) global: bool,
    pub(super) hidden: bool,
}

/// A value that an argument accepts.
#[derive(Deserialize)]
pub(super) struct PossibleValue {
    pub(super) name: String,
    pub(super) help: Option<String>,
}

/// A flag of kube-apiserver without effect.
#[derive(Deserialize)]
pub(super) struct ForeignFlag {
    pub(super) name: String,
    /// `ignored`, `refused`, or `only` and the accepted values.
    pub(super) outcome: String,
    pub(super) reason: String,
}

/// A controller of kube-controller-manager.
#[derive(Deserialize)]
pub(super) struct Controller {
    pub(super) name: String,
    pub(super) former_name: String,
    /// `yes`, `by name` or `not implemented`.
    pub(super) availability: String,
    pub(super) description: String,
}

/// An admission plugin.
#[derive(Deserialize)]
pub(super) struct AdmissionPlugin {
    pub(super) name: String,
    pub(super) on_by_default: bool,
    pub(super) mutates: bool,
    pub(super) validates: bool,
    pub(super) description: String,
}

impl Facts {
    /// Facts of the binary under test.
    pub(super) fn of_the_program() -> Self {
        // Variables such as PORTICO_DATA_DIR would change the defaults.
        let output = tools::output(Process::new(binary()).arg("reference").env_clear());
        assert!(output.status.success(), "portico reference: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Flags of the server, except help, version and flags without effect.
    pub(super) fn flags(&self) -> impl Iterator<Item = &Argument> {
        let listed = |flag: &&Argument| !flag.hidden && !matches!(flag.name(), "" | "help" | "version");
        self.command.arguments.iter().filter(listed)
    }
}

impl Argument {
    /// Name of a flag without dashes; empty for a positional argument.
    pub(super) fn name(&self) -> &str {
        self.long.as_deref().unwrap_or_default()
    }

    /// One line of help, without a default at its end.
    pub(super) fn summary(&self) -> &str {
        let help = self.help.as_deref().unwrap_or_default();
        help.split_once(DEFAULT).map_or(help, |(summary, _)| summary)
    }

    /// Default value as on the command line, or the default that the help text names.
    pub(super) fn default(&self) -> String {
        let help = self.help.as_deref().unwrap_or_default();
        match help.split_once(DEFAULT) {
            Some((_, default)) => default.trim_end_matches(']').to_owned(),
            None => self.defaults.join(","),
        }
    }

    /// Help text in paragraphs, without a default at the end of the first.
    pub(super) fn paragraphs(&self) -> Vec<&str> {
        let details = self.long_help.as_deref().into_iter().flat_map(|help| help.split("\n\n").skip(1));
        std::iter::once(self.summary()).chain(details).collect()
    }
}
