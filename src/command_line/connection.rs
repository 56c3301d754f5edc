//! Connection flags of client commands, which may also precede the command, as in kubectl. A command that does not use such a flag
//! refuses the flag.

use std::fmt;

use clap::builder::ValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

/// Names of the flags, which are also their ids in clap.
const IDS: [&str; 4] = ["kubeconfig", "context", "server", "namespace"];

/// Commands that start servers. The empty name means that the command line has no command.
const SERVERS: [&str; 4] = ["", "run", "server", "facade"];

/// Returns the flags of the root command. A command that uses such a flag declares the same id again, so that its help lists the flag.
pub(super) fn arguments() -> [Arg; 4] {
    IDS.map(|id| {
        let flag = Arg::new(id).long(id).global(true).hide(true);
        match id {
            "kubeconfig" => flag.value_parser(ValueParser::path_buf()),
            "namespace" => flag.short('n'),
            _ => flag,
        }
    })
}

/// Connection flag on the command line that the command does not use.
#[derive(Debug)]
pub(super) struct UnusedFlag {
    id: &'static str,
    /// Name of the command, such as `crds check`.
    command: String,
    /// Commands that use the flag.
    users: Vec<String>,
}

impl UnusedFlag {
    /// Returns the first unused flag on the command line that `tree` has parsed, if any.
    pub(super) fn find(tree: &Command, matches: &ArgMatches) -> Option<Self> {
        let (mut command, mut matches, mut name) = (tree, matches, String::new());
        while let Some((next, submatches)) = matches.subcommand() {
            (command, matches) = (command.find_subcommand(next)?, submatches);
            name = join_names(&name, next);
        }
        let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let id = IDS.into_iter().find(|id| is_given(id) && !uses(command, id))?;
        let mut users = Vec::new();
        collect_users(tree, "", id, &mut users);
        Some(Self { id, command: name, users })
    }

    /// Returns the hint for the error message, such as the commands that accept the flag.
    pub(super) fn hint(&self) -> String {
        match (self.id, self.command.as_str()) {
            ("namespace", "route try") => {
                "the path names the namespace: /api/v1/namespaces/NAMESPACE/configmaps".to_owned()
            }
            ("namespace", _) => format!("commands with this flag: {}", self.users.join(", ")),
            (_, command) if SERVERS.contains(&command) => {
                "a facade finds its control service with --control-kubeconfig".to_owned()
            }
            _ => "the command contacts no server; remove the flag".to_owned(),
        }
    }
}

impl fmt::Display for UnusedFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--{} does not apply to `{}`", self.id, join_names("portico", &self.command))
    }
}

/// Returns true if the command declares the flag itself. Flags inherited from the root are global.
fn uses(command: &Command, id: &str) -> bool {
    command.get_arguments().any(|argument| argument.get_id() == id && !argument.is_global_set())
}

fn collect_users(command: &Command, name: &str, id: &str, users: &mut Vec<String>) {
    if uses(command, id) {
        users.push(name.to_owned());
    }
    for subcommand in command.get_subcommands() {
        collect_users(subcommand, &join_names(name, subcommand.get_name()), id, users);
    }
}

fn join_names(parent: &str, name: &str) -> String {
    if parent.is_empty() || name.is_empty() { format!("{parent}{name}") } else { format!("{parent} {name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::command;

    /// Collects the words of each command that can be called.
    fn collect_callable(command: &Command, words: &[&str], callable: &mut Vec<Vec<String>>) {
        if !command.is_subcommand_required_set() {
            callable.push(words.iter().map(|word| (*word).to_owned()).collect());
        }
        for subcommand in command.get_subcommands() {
            collect_callable(subcommand, &[words, &[subcommand.get_name()]].concat(), callable);
        }
    }

    /// Returns the arguments that the command requires.
    fn required(command: &Command, name: &str) -> Vec<String> {
        let conditional: &[&str] = match name {
            "backup" => &["--to=x"],
            "restore" => &["--from=x"],
            "migrate" => &["--to=sqlite://x"],
            _ => &[],
        };
        let declared = command.get_arguments().filter(|argument| argument.is_required_set());
        let declared = declared.map(|argument| {
            let value =
                argument.get_possible_values().first().map_or("1".to_owned(), |v| v.get_name().to_owned());
            argument.get_long().map_or_else(|| value.clone(), |long| format!("--{long}={value}"))
        });
        conditional.iter().map(|text| (*text).to_owned()).chain(declared).collect()
    }

    #[test]
    fn every_command_lists_a_connection_flag_in_its_help_or_refuses_it() {
        let mut callable = Vec::new();
        collect_callable(&command(), &[], &mut callable);
        let mut refused = 0;
        for words in &callable {
            let mut tree = command();
            let leaf =
                words.iter().fold(&mut tree, |command, word| command.find_subcommand_mut(word).unwrap());
            let (arguments, help) = (required(leaf, &words.join(" ")), leaf.render_long_help().to_string());
            for id in IDS {
                let line = [&["portico".to_owned()][..], words, &arguments, &[format!("--{id}=x")]].concat();
                let mut tree = command();
                let matches =
                    tree.try_get_matches_from_mut(&line).unwrap_or_else(|e| panic!("{line:?}: {e}"));
                let unused = UnusedFlag::find(&tree, &matches);
                assert_eq!(unused.is_none(), help.contains(&format!("--{id} <")), "{line:?}");
                if let Some(unused) = unused {
                    let text =
                        format!("--{id} does not apply to `{}`", join_names("portico", &words.join(" ")));
                    assert!(unused.to_string() == text && !unused.hint().is_empty(), "{unused}");
                    refused += 1;
                }
            }
        }
        assert!(callable.len() >= 30 && refused > 30, "{refused} of {callable:?}");
    }
}
