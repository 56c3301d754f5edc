//! flags.md, the index of all flags, and one page of details per group of headings.

use super::facts::{Argument, Facts};
use super::markdown::{code, sentence, table};
use super::page::Page;

/// A page of details: file, title, and its headings with the process that uses their flags.
pub(super) struct Group {
    pub(super) file: &'static str,
    title: &'static str,
    pub(super) headings: &'static [(&'static str, &'static str)],
}

const ALL: &str = "the control service and the facade";
const FACADE: &str = "the facade";
const CONTROL: &str = "the control service";

/// All groups, in the order of the index.
pub(super) const GROUPS: &[Group] = &[
    Group {
        file: "flags-general.md",
        title: "General flags",
        headings: &[
            ("General", ALL),
            ("Logging, metrics and tracing", ALL),
            ("Testing", ALL),
            ("Manifests", CONTROL),
        ],
    },
    Group {
        file: "flags-serving.md",
        title: "Flags of serving",
        headings: &[
            ("Serving", FACADE),
            ("TLS", FACADE),
            ("Request limits", FACADE),
            ("Health and shutdown", ALL),
            ("Control service", "the control service and facades that connect to it"),
        ],
    },
    Group {
        file: "flags-backends.md",
        title: "Flags of connections to other servers",
        headings: &[("Backends and webhooks", ALL), ("Kubelets", ALL), ("Peers", ALL)],
    },
    Group {
        file: "flags-security.md",
        title: "Flags of authentication and authorization",
        headings: &[
            ("Authentication", ALL),
            ("Service account tokens", CONTROL),
            ("Authorization", ALL),
            ("Certificate signing", CONTROL),
        ],
    },
    Group { file: "flags-audit.md", title: "Flags of audit", headings: &[("Audit", ALL)] },
    Group {
        file: "flags-storage.md",
        title: "Flags of storage",
        headings: &[("Storage", CONTROL), ("PostgreSQL", CONTROL), ("etcd", CONTROL)],
    },
    Group {
        file: "flags-api.md",
        title: "Flags of the API, admission and controllers",
        headings: &[("API", CONTROL), ("Admission", CONTROL), ("Controllers", CONTROL)],
    },
];

const INTRODUCTION: &str = "\
# Flags

Flags of `portico`, `portico run`, `portico server` and `portico facade`. Each command accepts all flags; a flag that the
process does not use is validated and has no effect. Select a flag for details.

- A flag can be set on the command line (`--data-dir=DIR`), in the environment (`PORTICO_DATA_DIR=DIR`) or in the file of
  `--config` (`data-dir: DIR`). The command line takes precedence over the environment, the environment over the file.
- A variable is the flag's name in capital letters with underscores, after `PORTICO_`.
- Durations have units: `300ms`, `30s`, `5m`, `1h30m`. Sizes are in bytes unless the name of the flag has another unit.
- Lists are separated by commas; a flag that is repeatable can be given several times.
- An invalid value is reported in one line that names the flag, with exit code 2, before the server listens on a port.

See also [config-file.md](config-file.md) and [kube-apiserver-flags.md](kube-apiserver-flags.md).
";

/// The index and the pages of details.
pub(super) fn pages(facts: &Facts) -> Vec<Page> {
    for flag in facts.flags() {
        let heading = flag.heading.as_deref().unwrap_or_default();
        assert!(file_of(heading).is_some(), "--{}: heading {heading:?} is not in GROUPS", flag.name());
    }
    let mut index = String::from(INTRODUCTION);
    for (group, heading) in headings() {
        let rows = under(facts, heading).map(|flag| {
            let link = format!("[{}]({}#--{})", code(&format!("--{}", flag.name())), group.file, flag.name());
            [link, code(&flag.default()), sentence(flag.summary())]
        });
        index.push_str(&format!("\n## {heading}\n\n"));
        index.push_str(&table(["Flag", "Default", "Description"], rows));
    }
    let mut pages = vec![Page::new("flags.md", index)];
    pages.extend(GROUPS.iter().map(|group| details(facts, group)));
    pages
}

/// All headings with their group.
fn headings() -> impl Iterator<Item = (&'static Group, &'static str)> {
    GROUPS.iter().flat_map(|group| group.headings.iter().map(move |(heading, _)| (group, *heading)))
}

/// The page of details that has a heading.
pub(super) fn file_of(heading: &str) -> Option<&'static str> {
    headings().find(|(_, name)| *name == heading).map(|(group, _)| group.file)
}

/// Flags under a heading.
pub(super) fn under<'a>(facts: &'a Facts, heading: &'a str) -> impl Iterator<Item = &'a Argument> {
    facts.flags().filter(move |flag| flag.heading.as_deref() == Some(heading))
}

fn details(facts: &Facts, group: &Group) -> Page {
    let mut text = format!("# {}\n\nIndex and general rules: [flags.md](flags.md).\n", group.title);
    for (heading, user) in group.headings {
        text.push_str(&format!("\n## {heading}\n\nUsed by {user}.\n"));
        for flag in under(facts, heading) {
            text.push_str(&detail(flag));
        }
    }
    Page::new(group.file, text)
}

fn detail(flag: &Argument) -> String {
    let paragraphs: Vec<String> = flag.paragraphs().into_iter().map(sentence).collect();
    format!("\n### `--{}`\n\n{}\n\n{}\n", flag.name(), paragraphs.join("\n\n"), value(flag))
}

/// Value, default and possible values of a flag, in one line.
fn value(flag: &Argument) -> String {
    let mut parts = Vec::new();
    parts.extend(flag.value_name.as_ref().map(|name| format!("Value: `{name}`.")));
    if flag.repeatable {
        parts.push("List.".to_owned());
    }
    let default = flag.default();
    parts.push(match binary_size(flag) {
        _ if default.is_empty() => "No default.".to_owned(),
        Some(size) => format!("Default: `{default}` ({size})."),
        None => format!("Default: `{default}`."),
    });
    let is_bool = flag.possible_values.iter().any(|value| value.name == "true");
    if !is_bool && !flag.possible_values.is_empty() {
        let values = flag.possible_values.iter().map(|value| match &value.help {
            Some(help) => format!("`{}` ({})", value.name, help.trim_end_matches('.')),
            None => code(&value.name),
        });
        parts.push(format!("Possible values: {}.", values.collect::<Vec<_>>().join(", ")));
    }
    parts.extend(flag.short.map(|short| format!("Short form: `-{short}`.")));
    parts.join(" ")
}

/// A default in bytes with a binary unit, if it is a whole number of them.
fn binary_size(flag: &Argument) -> Option<String> {
    let bytes: u64 = flag.default().parse().ok().filter(|_| flag.value_name.as_deref() == Some("BYTES"))?;
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let (unit, size) = units.into_iter().find(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size))?;
    Some(format!("{} {unit}", bytes / size))
}
