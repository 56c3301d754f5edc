//! cli.md, the index of commands, and pages with the usage and flags of each command.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::{Argument, Command, Facts};
use super::markdown::{code, sentence, table};
use super::page::Page;

/// Heading, page and commands of a group.
type Group = (&'static str, &'static str, &'static [&'static str]);

const GROUPS: [Group; 5] = [
    ("Run", INDEX, &["run", "server", "facade"]),
    ("Inspect", "cli-objects.md", &["get", "explain", "routes", "route", "watch", "tree", "history", "diff"]),
    ("Change", "cli-objects.md", &["apply", "rollback", "undelete"]),
    ("Data", "cli-data.md", &["backup", "restore", "migrate", "doctor", "secrets"]),
    ("Check and test", "cli-data.md", &["crds", "config", "testenv"]),
];
/// Heading of commands without a group.
const OTHER: &str = "Other";

const INDEX: &str = "cli.md";
const PAGES: [(&str, &str); 2] = [
    ("cli-objects.md", "# Commands for objects and routes"),
    ("cli-data.md", "# Commands for data and tests"),
];

/// Number of commands that share a flag before it is described once for all of them.
const COMMON: usize = 5;

const INTRODUCTION: &str = "\
# Command line

Commands of `portico`. Without a command, `portico` runs the control service and a facade in one process. Flags of `portico`,
`run`, `server` and `facade` are listed in [flags.md](flags.md), exit codes in [exit-codes.md](exit-codes.md).
";

/// Data that the sections of commands share.
struct Context<'a> {
    /// Names of the flags of servers.
    server_flags: BTreeSet<&'a str>,
    /// Flags that many commands accept with the same help, by name.
    common: BTreeMap<&'a str, &'a Argument>,
}

/// The index and the pages of commands.
pub(super) fn pages(facts: &Facts) -> Vec<Page> {
    let server_flags = facts.flags().map(Argument::name).collect();
    let mut context = Context { server_flags, common: BTreeMap::new() };
    context.common = common(&context, &facts.command);
    let mut index = format!("{INTRODUCTION}\n{}", overview(&facts.command));
    index.push_str(
        "\n## Common flags\n\nA command that accepts one of these flags names it at the end of its list.\n\n",
    );
    for flag in context.common.values() {
        index.push_str(&item(flag));
    }
    index.push_str(&sections(&context, &facts.command, INDEX));
    let mut pages = vec![Page::new(INDEX, index)];
    pages.extend(PAGES.map(|(file, title)| {
        let sections = sections(&context, &facts.command, file);
        Page::new(file, format!("{title}\n\nIndex and common flags: [{INDEX}]({INDEX}).\n{sections}"))
    }));
    pages
}

/// A table of all commands.
fn overview(root: &Command) -> String {
    let rows = in_order(root).map(|(heading, file, command)| {
        let name = format!("portico {}", command.name);
        let link = format!("[`{name}`]({file}#{})", name.replace(' ', "-"));
        [heading.to_owned(), link, sentence(command.about.as_deref().unwrap_or_default())]
    });
    table(["Group", "Command", "Description"], rows)
}

/// Commands with heading and page, in the order of the groups.
fn in_order(root: &Command) -> impl Iterator<Item = (&'static str, &'static str, &Command)> {
    let grouped = GROUPS.iter().flat_map(|(heading, file, names)| {
        names.iter().filter_map(|name| {
            let command = visible(root).find(|command| command.name == *name)?;
            Some((*heading, *file, command))
        })
    });
    let is_grouped = |name: &str| GROUPS.iter().any(|(.., names)| names.contains(&name));
    let others = visible(root).filter(move |command| !is_grouped(&command.name));
    grouped.chain(others.map(|command| (OTHER, INDEX, command)))
}

/// Sections of the commands on a page.
fn sections(context: &Context<'_>, root: &Command, page: &str) -> String {
    let mut text = String::new();
    for (_, _, command) in in_order(root).filter(|(_, file, _)| *file == page) {
        section(context, command, "portico", &mut text);
    }
    text
}

fn common<'a>(context: &Context<'a>, root: &'a Command) -> BTreeMap<&'a str, &'a Argument> {
    let mut found: BTreeMap<(&str, &str), Vec<&Argument>> = BTreeMap::new();
    let flags = descendants(root).into_iter().flat_map(|command| own_flags(context, command));
    for flag in flags.filter(|flag| !flag.name().is_empty()) {
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

/// Arguments of a command, except those of its parents and the flags that all servers accept.
fn own_flags<'a>(context: &Context<'a>, command: &'a Command) -> Vec<&'a Argument> {
    let names: BTreeSet<&str> = command.arguments.iter().map(Argument::name).collect();
    let is_server = context.server_flags.is_subset(&names);
    let is_own = |flag: &&Argument| {
        let is_general = matches!(flag.name(), "help" | "version");
        let is_of_servers = is_server && context.server_flags.contains(flag.name());
        !(flag.hidden || flag.global || is_general || is_of_servers)
    };
    command.arguments.iter().filter(is_own).collect()
}

fn section(context: &Context<'_>, command: &Command, parent: &str, text: &mut String) {
    let name = format!("{parent} {}", command.name);
    let about = command.long_about.as_ref().or(command.about.as_ref()).map_or("", String::as_str);
    let about: Vec<String> = about.split("\n\n").map(sentence).collect();
    let usage = command.usage.trim_start_matches("Usage: ");
    text.push_str(&format!("\n## {name}\n\n{}\n\n    {usage}\n", about.join("\n\n")));
    text.push_str(&flag_list(context, &own_flags(context, command)));
    for nested in visible(command) {
        section(context, nested, &name, text);
    }
}

/// A list of flags; common flags are only named.
fn flag_list(context: &Context<'_>, flags: &[&Argument]) -> String {
    let is_common = |flag: &&&Argument| {
        context.common.get(flag.name()).is_some_and(|shared| shared.summary() == flag.summary())
    };
    let (shared, own): (Vec<&Argument>, Vec<&Argument>) = flags.iter().partition(is_common);
    let mut items: Vec<String> = own.into_iter().map(item).collect();
    if !shared.is_empty() {
        let names: Vec<_> = shared.iter().map(|flag| format!("`--{}`", flag.name())).collect();
        items.push(format!("- Common flags: {}.\n", names.join(", ")));
    }
    if items.is_empty() { String::new() } else { format!("\n{}", items.concat()) }
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
