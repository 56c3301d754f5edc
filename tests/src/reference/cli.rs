//! cli.md: every command with its usage and flags.

use std::collections::BTreeMap;

use super::facts::{Argument, Command, Facts};
use super::markdown::{code, sentence};
use super::page::Page;

/// Commands that must have a flag in common before it is listed once for all of them.
const COMMON: usize = 5;

const INTRODUCTION: &str = "\
# Command line

Commands of `portico`. Without a command, `portico` runs the control service and a facade in one process. Flags of `portico`,
`run`, `server` and `facade` are listed in [flags.md](flags.md), exit codes in [exit-codes.md](exit-codes.md).
";

pub(super) fn page(facts: &Facts) -> Page {
    let common = common(&facts.command);
    let mut text = format!(
        "{INTRODUCTION}\n## Common flags\n\nCommands that accept some of these flags name them at the end of their list.\n\n"
    );
    for flag in common.values() {
        text.push_str(&item(flag));
    }
    for command in visible(&facts.command) {
        section(command, "portico", &common, &mut text);
    }
    Page::new("cli.md", text)
}

/// Flags that many commands accept with the same help, by name.
fn common(root: &Command) -> BTreeMap<&str, &Argument> {
    let mut found: BTreeMap<(&str, &str), Vec<&Argument>> = BTreeMap::new();
    for flag in descendants(root).into_iter().flat_map(flags).filter(|flag| !flag.name().is_empty()) {
        found.entry((flag.name(), flag.summary())).or_default().push(flag);
    }
    found
        .into_values()
        .filter(|flags| flags.len() >= COMMON)
        .map(|flags| (flags[0].name(), flags[0]))
        .collect()
}

/// All visible commands below a command.
fn descendants(command: &Command) -> Vec<&Command> {
    visible(command).flat_map(|nested| std::iter::once(nested).chain(descendants(nested))).collect()
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.commands.iter().filter(|command| !command.hidden)
}

/// Arguments of a command that are not inherited from the root.
fn flags(command: &Command) -> impl Iterator<Item = &Argument> {
    let listed =
        |flag: &&Argument| !flag.hidden && !flag.global && !matches!(flag.name(), "help" | "version");
    command.arguments.iter().filter(listed)
}

fn section(command: &Command, parent: &str, common: &BTreeMap<&str, &Argument>, text: &mut String) {
    let name = format!("{parent} {}", command.name);
    let about = command.long_about.as_ref().or(command.about.as_ref()).map_or("", String::as_str);
    let about: Vec<String> = about.split("\n\n").map(sentence).collect();
    let usage = command.usage.trim_start_matches("Usage: ");
    text.push_str(&format!("\n## {name}\n\n{}\n\n    {usage}\n", about.join("\n\n")));
    if flags(command).next().is_some() {
        text.push('\n');
    }
    let is_common =
        |flag: &&Argument| common.get(flag.name()).is_some_and(|shared| shared.summary() == flag.summary());
    let (shared, own): (Vec<_>, Vec<_>) = flags(command).partition(is_common);
    for flag in own {
        text.push_str(&item(flag));
    }
    if !shared.is_empty() {
        let names: Vec<_> = shared.iter().map(|flag| format!("`--{}`", flag.name())).collect();
        text.push_str(&format!("- Common flags: {}.\n", names.join(", ")));
    }
    for nested in visible(command) {
        section(nested, &name, common, text);
    }
}

fn item(flag: &Argument) -> String {
    let value = flag.value_name.as_deref().unwrap_or_default();
    let names = flag.short.map(|short| format!("-{short}")).into_iter();
    let names: Vec<String> = names.chain(flag.long.as_ref().map(|long| format!("--{long}"))).collect();
    let label = code(format!("{} {value}", names.join(", ")).trim());
    let default = flag.default();
    let is_listed = !default.is_empty() && flag.value_name.is_some();
    let default = if is_listed { format!(" Default: `{default}`.") } else { String::new() };
    format!("- {label}: {}{default}\n", sentence(flag.summary()))
}
