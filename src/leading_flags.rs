//! Flags of a verb that stand before it, as kubectl takes them: `portico --kubeconfig FILE get pods`.

use std::ffi::OsString;

use clap::Command;

use crate::{client_verbs, command_tree, data};

/// Verbs that are programs' own besides those of the client and of data.
const OTHERS: [&str; 4] = ["crds", "config", "secrets", crate::testenv::VERB];

/// The same arguments with the verb first; nothing where they begin with one, have none, or have flags before it that are not its own.
pub(crate) fn moved_behind_the_verb(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let (program, rest) = arguments.split_first()?;
    // Most command lines that begin with a flag are those of servers: no verb is looked at for them.
    let verbs = positions(rest);
    let tree = if verbs.is_empty() { return None } else { command_tree::verbs() };
    verbs.into_iter().find_map(|at| {
        let (flags, behind) = rest.split_at(at);
        let (command, depth) = resolved(&tree, behind)?;
        let (path, behind) = behind.split_at(depth);
        let moved = || [path, flags, behind].into_iter().flatten().cloned();
        are_flags_of(command, flags).then(|| std::iter::once(program.clone()).chain(moved()).collect())
    })
}

/// The verb that these arguments have behind flags of others.
pub(crate) fn misplaced_verb(arguments: &[OsString]) -> Option<&str> {
    let rest = arguments.get(1..)?;
    positions(rest).first().and_then(|at| rest[*at].to_str())
}

/// Where words stand that are verbs, behind a flag.
fn positions(arguments: &[OsString]) -> Vec<usize> {
    let is_flag = |argument: &OsString| argument.to_str().is_some_and(|text| text.starts_with('-'));
    if !arguments.first().is_some_and(is_flag) {
        return Vec::new();
    }
    let ends = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    let words = arguments[..ends].iter().enumerate();
    words.filter(|(_, word)| word.to_str().is_some_and(is_verb)).map(|(at, _)| at).collect()
}

fn is_verb(word: &str) -> bool {
    client_verbs::VERBS.contains(&word) || data::VERBS.contains(&word) || OTHERS.contains(&word)
}

/// The command that arguments begin with, as far down as they name one, and how many words that takes.
fn resolved<'a>(tree: &'a [Command], arguments: &[OsString]) -> Option<(&'a Command, usize)> {
    let (mut command, mut depth) = (named(tree.iter(), arguments.first())?, 1);
    while let Some(below) = named(command.get_subcommands(), arguments.get(depth)) {
        (command, depth) = (below, depth + 1);
    }
    Some((command, depth))
}

fn named<'a>(
    mut commands: impl Iterator<Item = &'a Command>,
    word: Option<&OsString>,
) -> Option<&'a Command> {
    let word = word?.to_str()?;
    commands.find(|command| command.get_name() == word)
}

/// Whether these are flags of the command with their values, and nothing else.
fn are_flags_of(command: &Command, arguments: &[OsString]) -> bool {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let Some(text) = argument.to_str() else { return false };
        let Some((flag, has_value)) = flag_of(command, text) else { return false };
        let takes_value = flag.get_action().takes_values();
        if has_value && !takes_value {
            return false;
        }
        let takes_next = takes_value && !has_value && !flag.is_require_equals_set();
        if takes_next && rest.next().is_none() {
            return false;
        }
    }
    true
}

/// The flag of a command that an argument is (`--output`, `-o`), and whether its value is in it, too (`--output=name`, `-oname`).
fn flag_of<'a>(command: &'a Command, argument: &str) -> Option<(&'a clap::Arg, bool)> {
    let mut flags = command.get_arguments();
    if let Some(long) = argument.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        return Some((flags.find(|flag| flag.get_long() == Some(name))?, value.is_some()));
    }
    let mut letters = argument.strip_prefix('-')?.chars();
    let letter = letters.next()?;
    let flag = flags.find(|flag| flag.get_short() == Some(letter))?;
    Some((flag, !letters.as_str().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(arguments: &[&str]) -> Option<Vec<String>> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let moved = moved_behind_the_verb(&arguments)?;
        Some(moved.into_iter().map(|argument| argument.into_string().unwrap()).collect())
    }

    #[test]
    fn flags_of_the_verb_go_behind_it_and_behind_the_verb_below_it() {
        for (given, expected) in [
            ("p --kubeconfig x get pods", "p get --kubeconfig x pods"),
            ("p --kubeconfig=x -n demo get pods -o wide", "p get --kubeconfig=x -n demo pods -o wide"),
            ("p -oname -n=demo get pods", "p get -oname -n=demo pods"),
            ("p -A get get", "p get -A get"),
            ("p -n get get pods", "p get -n get pods"),
            ("p --context c route try /apis", "p route try --context c /apis"),
        ] {
            let words: Vec<&str> = given.split(' ').collect();
            assert_eq!(moved(&words).map(|words| words.join(" ")).as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_is_no_flag_of_the_verb_moves_nothing() {
        for given in [
            "p",
            "p get pods",
            "p --secure-port 0",
            "p --secure-port 0 get pods",
            "p --namespace x routes",
            "p --kubeconfig get",
            "p -Aoname get pods",
            "p run -- get",
            "p --ephemeral run -- portico get",
        ] {
            let words: Vec<&str> = given.split(' ').collect();
            assert_eq!(moved(&words), None, "{given}");
        }
    }
}
