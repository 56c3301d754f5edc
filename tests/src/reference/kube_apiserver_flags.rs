//! kube-apiserver-flags.md: what happens to each flag of kube-apiserver.

use std::fs;

use super::facts::{Argument, Facts, ForeignFlag};
use super::flags::file_of;
use super::markdown::{code, sentence, table};
use super::page::Page;
use crate::binary::repository;

const REQUIRED: &str = "required";
const NONE: &str = "none";

/// Flags whose default differs from kube-apiserver's, with that default and the reason.
const OTHER_DEFAULTS: &[(&str, &str, &str)] = &[
    ("authorization-mode", "AlwaysAllow", "Secure by default."),
    ("bind-address", "0.0.0.0", "Reachable from the host only, unless you choose otherwise."),
    ("cert-dir", "/var/run/kubernetes", "Certificates are in the data directory."),
    ("enable-aggregator-routing", "false", "Cluster IPs are not routed without kube-proxy."),
    ("etcd-servers", REQUIRED, "The default store is a SQLite database in the data directory."),
    ("service-account-issuer", REQUIRED, "The issuer that kubeadm configures."),
    ("service-account-signing-key-file", REQUIRED, "A key is generated and kept in the data directory."),
    ("service-cluster-ip-range", NONE, "The range that kube-apiserver uses if none is set."),
    ("v", "0", "Level info, which has the same meaning."),
];

const INTRODUCTION: &str = "\
# Flags of kube-apiserver

`portico` accepts the flags of kube-apiserver 1.36, so that an existing command line can be reused. Every flag of
kube-apiserver is in one of these tables.

- [Supported](#supported): the flag has the meaning that it has in kube-apiserver.
- [Accepted without effect](#accepted-without-effect): the flag is accepted with any value, and a warning is logged at start.
- [Accepted with some values](#accepted-with-some-values): the values describe what the server does in any case; other
  values are rejected with exit code 2.
- [Not accepted](#not-accepted): the flag is rejected with exit code 2.

All other flags of `portico` are in [flags.md](flags.md).
";

pub(super) fn page(facts: &Facts) -> Page {
    let list = fs::read_to_string(repository().join("src/settings/kube_apiserver_flags.txt")).unwrap();
    let upstream: Vec<&str> = list.lines().collect();
    let mut text = String::from(INTRODUCTION);
    text.push_str("\n## Different defaults\n\n");
    let rows = OTHER_DEFAULTS.iter().map(|(name, default, reason)| {
        let flag = facts.flags().find(|flag| flag.name() == *name).unwrap();
        assert!(upstream.contains(name), "--{name} is not a flag of kube-apiserver");
        let is_value = !matches!(*default, REQUIRED | NONE);
        let default = if is_value { code(default) } else { default.to_string() };
        [link(flag), default, code(&flag.default()), reason.to_string()]
    });
    text.push_str(&table(["Flag", "Default of kube-apiserver", "Default here", "Reason"], rows));
    text.push_str("\n## Supported\n\n");
    let supported = facts.flags().filter(|flag| upstream.contains(&flag.name()));
    let mut rows: Vec<_> = supported.map(|flag| [link(flag), sentence(flag.summary())]).collect();
    rows.sort();
    text.push_str(&table(["Flag", "Description"], rows));
    for (title, outcome) in [
        ("Accepted without effect", "ignored"),
        ("Accepted with some values", "only"),
        ("Not accepted", "refused"),
    ] {
        text.push_str(&format!("\n## {title}\n\n"));
        text.push_str(&foreign(facts.foreign_flags.iter().filter(|flag| flag.outcome.starts_with(outcome))));
    }
    Page::new("kube-apiserver-flags.md", text)
}

fn link(flag: &Argument) -> String {
    let heading = flag.heading.as_deref().unwrap_or_default();
    format!("[`--{name}`]({file}#--{name})", name = flag.name(), file = file_of(heading).unwrap())
}

fn foreign<'a>(flags: impl Iterator<Item = &'a ForeignFlag>) -> String {
    let rows: Vec<_> = flags
        .map(|flag| {
            let values = flag.outcome.strip_prefix("only ").unwrap_or("-").to_owned();
            let reason = sentence(&capitalized(&flag.reason));
            [format!("`--{}`", flag.name), values, reason]
        })
        .collect();
    if rows.iter().all(|[_, values, _]| values == "-") {
        return table(["Flag", "Reason"], rows.into_iter().map(|[name, _, reason]| [name, reason]));
    }
    table(["Flag", "Values", "Reason"], rows)
}

/// Text that begins with a capital letter, unless it begins with a flag or a path.
fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}
