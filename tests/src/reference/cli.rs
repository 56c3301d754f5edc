//! cli.md: every command with its usage and flags.

use super::facts::{Argument, Command, Facts};
use super::markdown::{code, sentence};
use super::page::Page;

pub(super) fn page(facts: &Facts) -> Page {
    let mut text = String::from(
        "# Command line\n\nCommands of `portico`. Without a command, `portico` runs the control service and a facade \
         in one process.\nFlags of `portico`, `run`, `server` and `facade` are listed in [flags.md](flags.md).\n\n",
    );
    for command in visible(&facts.command) {
        section(command, "portico", 2, &mut text);
    }
    Page::new("cli.md", text)
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.commands.iter().filter(|command| !command.hidden)
}

fn section(command: &Command, parent: &str, level: usize, text: &mut String) {
    let name = format!("{parent} {}", command.name);
    let about =
        command.long_about.as_ref().or(command.about.as_ref()).map_or(String::new(), |about| sentence(about));
    let usage = command.usage.trim_start_matches("Usage: ");
    text.push_str(&format!("{} {name}\n\n{about}\n\n    {usage}\n\n", "#".repeat(level)));
    let flags = command.arguments.iter().filter(|argument| !argument.hidden && !argument.global);
    for argument in flags.filter(|argument| !matches!(argument.long.as_deref(), Some("help" | "version"))) {
        text.push_str(&format!(
            "- {}: {}\n",
            label(argument),
            sentence(argument.help.as_deref().unwrap_or_default())
        ));
    }
    text.push('\n');
    for nested in visible(command) {
        section(nested, &name, level + 1, text);
    }
}

fn label(argument: &Argument) -> String {
    let value = argument.value_name.as_deref().unwrap_or_default();
    let long = argument.long.as_ref().map(|long| format!("--{long}"));
    let short = argument.short.map(|short| format!("-{short}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    code(format!("{} {value}", names.join(", ")).trim())
}
