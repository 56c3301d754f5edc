//! Help: the overview of `portico -h`, and `portico help` for a command, the server flags or the exit codes.

use std::process::ExitCode;

use clap::Command;
use clap::error::ErrorKind;

use crate::exit::{fail_with_hint, print_text};
use crate::usage_error::UsageError;
use crate::{exit_codes, settings};

/// Commands by group, in the order of the overview.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Run", &["run", "server", "facade"]),
    ("Inspect", &["get", "explain", "routes", "route", "watch", "tree", "history", "diff"]),
    ("Change", &["apply", "rollback", "undelete"]),
    ("Data", &["backup", "restore", "migrate", "doctor", "secrets"]),
    ("Check and test", &["crds", "config", "testenv"]),
    ("Other", &["completion", "man", "version", "help"]),
];

/// Server flags that the overview lists because most users need them.
const COMMON_FLAGS: [(&str, &str); 10] = [
    ("--config FILE", "Read settings from a YAML file"),
    ("--data-dir DIR", "Folder of the database and certificates [./portico-data]"),
    ("--database-url URL", "Store objects in PostgreSQL instead"),
    ("--etcd-servers URL,...", "Store objects in etcd instead"),
    ("--ephemeral", "Keep no data: use a temporary folder and free ports"),
    ("--manifests DIR", "Apply a folder of manifests, and follow its changes"),
    ("--bind-address IP", "IP address for HTTPS [127.0.0.1]"),
    ("--secure-port PORT", "Port for HTTPS [6443]"),
    ("--control-kubeconfig FILE", "Kubeconfig of a facade's control service"),
    ("-v LEVEL", "Log level: error, warn, info, debug [info]"),
];

/// Print help for a command, `flags` or `exit-codes`
///
/// Exit codes: 0 printed; 2 the command is unknown, or the text could not be written.
#[derive(Debug, clap::Args)]
pub(super) struct Help {
    /// A command (`get`, `crds check`), `flags` or `exit-codes`
    #[arg(value_name = "COMMAND|flags|exit-codes")]
    topic: Vec<String>,
}

impl Help {
    pub(super) fn print(&self, portico: Command) -> ExitCode {
        let topic: Vec<&str> = self.topic.iter().map(String::as_str).collect();
        match topic.as_slice() {
            ["flags"] => print_text(&flags(), exit_codes::NOT_PRINTED),
            ["exit-codes"] => print_text(&exit_codes::table(), exit_codes::NOT_PRINTED),
            names => match help_of(portico, names) {
                Some(text) => print_text(&text, exit_codes::NOT_PRINTED),
                None => {
                    let text = format!("help: unknown command: {}", names.join(" "));
                    fail_with_hint(&text, Some("`portico help` lists all commands"), exit_codes::USAGE)
                }
            },
        }
    }
}

/// Returns the text that `portico NAMES --help` prints, or `None` if the command is unknown.
fn help_of(mut portico: Command, names: &[&str]) -> Option<String> {
    names.iter().try_fold(&portico, |command, name| command.find_subcommand(name))?;
    let arguments = ["portico"].iter().chain(names).chain(&["--help"]);
    let result = portico.try_get_matches_from_mut(arguments);
    result.err().filter(|error| error.kind() == ErrorKind::DisplayHelp).map(|error| error.to_string())
}

/// Returns the hint for an unknown flag, argument or command: the most similar name, or else the command that lists the known ones.
pub(super) fn hint(kind: ErrorKind, error: &UsageError, tree: &Command) -> Option<String> {
    let command = error.command.as_str();
    let general = match (kind, error.argument.starts_with('-'), command) {
        (ErrorKind::UnknownArgument, true, "") => return Some(hint_before_commands(error, tree)),
        (ErrorKind::UnknownArgument, false, "" | "run") => {
            "a program to run goes behind --: portico run -- CMD ARGS".to_owned()
        }
        (ErrorKind::UnknownArgument, true, _) => format!("`portico {command} --help` lists its flags"),
        (ErrorKind::UnknownArgument, false, _) => format!("`portico {command} --help` lists its arguments"),
        (ErrorKind::InvalidSubcommand, _, "") => "`portico -h` lists all commands".to_owned(),
        (ErrorKind::InvalidSubcommand, ..) => format!("`portico {command} --help` lists its commands"),
        _ => return error.hint.clone(),
    };
    Some(error.hint.clone().unwrap_or(general))
}

/// Returns the hint for an unknown flag before the command: the commands that accept the flag, or else the most similar flag.
fn hint_before_commands(error: &UsageError, tree: &Command) -> String {
    let long = error.argument.strip_prefix("--");
    let has_flag = |command: &&Command| {
        long.is_some() && command.get_arguments().any(|argument| argument.get_long() == long)
    };
    let names: Vec<&str> = tree.get_subcommands().filter(has_flag).map(Command::get_name).collect();
    let behind = "flags of a command go behind the command";
    match (&names[..], &error.hint, long) {
        ([], Some(similar), _) => similar.clone(),
        ([], None, Some(_)) => {
            "`portico help flags` lists the flags of servers, `portico help COMMAND` those of a command"
                .to_owned()
        }
        ([], None, None) => format!("{behind}; `portico help COMMAND` lists them"),
        (names, ..) => format!("{behind}; these have it: {}", names.join(", ")),
    }
}

/// Returns the overview on one screen: commands by group, and the most common server flags.
pub(super) fn overview(portico: &Command) -> String {
    let mut text = format!("{}\n\nUsage: portico [COMMAND] [FLAGS]\n", about(portico));
    for (heading, names) in GROUPS {
        text.push_str(&format!("\n{heading}:\n"));
        for command in names.iter().filter_map(|name| portico.find_subcommand(name)) {
            text.push_str(&format!("  {:<10}  {}\n", command.get_name(), about(command)));
        }
    }
    text.push_str("\nFlags of servers (`portico help flags` lists all):\n");
    for (flag, description) in COMMON_FLAGS {
        text.push_str(&format!("  {flag:<25}  {description}\n"));
    }
    text.push_str(
        "\n`portico help COMMAND` describes a command, `portico help exit-codes` the exit codes.\n",
    );
    text
}

/// Returns the help of all server flags, by heading.
fn flags() -> String {
    let intro = "Flags of `portico`, `portico run`, `portico server` and `portico facade`. A flag is also read from the environment \
                 (--data-dir: PORTICO_DATA_DIR) and from the file of --config (data-dir: DIR); flags take precedence, then the \
                 environment.";
    format!("{intro}\n\n{}", settings::flag_command().help_template("{all-args}").render_help())
}

/// Returns the first line of a command's description, without a final period.
fn about(command: &Command) -> String {
    let text = command.get_about().map(ToString::to_string).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
}
