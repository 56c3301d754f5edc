//! config-file.md: a file of settings with all keys and their defaults.

use super::facts::{Argument, Facts};
use super::flags::{GROUPS, under};
use super::page::Page;

const INTRODUCTION: &str = "\
# Configuration file

Pass a YAML file with `--config FILE` or `PORTICO_CONFIG=FILE`. Keys are the names of [flags](flags.md) without dashes.

- Flags and environment variables override the file.
- A list can be a YAML list or a text with commas.
- An unknown key, or an invalid value, is reported in one line with exit code 2.
- The file is read once, at start.

All keys with their defaults follow; keys without a default are commented out, with the type of their value. A file that
contains only what differs from the defaults is easier to maintain.

";

pub(super) fn page(facts: &Facts) -> Page {
    let mut text = String::from(INTRODUCTION);
    text.push_str("```yaml\n");
    for (at, (heading, _)) in GROUPS.iter().flat_map(|group| group.headings).enumerate() {
        let separator = if at == 0 { "" } else { "\n" };
        text.push_str(&format!("{separator}## {heading}\n"));
        for flag in under(facts, heading).filter(|flag| flag.name() != "config") {
            text.push_str(&line(flag));
        }
    }
    text.push_str("```\n");
    Page::new("config-file.md", text)
}

/// A key with its value and a comment.
fn line(flag: &Argument) -> String {
    let (name, help) = (flag.name(), flag.help.as_deref().unwrap_or_default());
    let kind = flag.value_name.as_deref().unwrap_or_default();
    if flag.defaults.is_empty() {
        return format!("# {name}: {kind} # {help}.\n");
    }
    let kind = if kind == "BOOL" { String::new() } else { format!("{kind}: ") };
    let values: Vec<String> = flag.defaults.iter().flat_map(|value| value.split(',')).map(scalar).collect();
    let value = if flag.repeatable { format!("[{}]", values.join(", ")) } else { scalar(&flag.default()) };
    format!("{name}: {value} # {kind}{help}.\n")
}

/// A YAML scalar, quoted where its meaning requires it.
fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/'))
        && !text.contains([' ', '#', '\'', ',']);
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}
