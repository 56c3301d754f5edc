//! admission-plugins.md: the admission plugins.

use super::facts::{AdmissionPlugin, Facts};
use super::markdown::{code, sentence, table};
use super::page::Page;

const INTRODUCTION: &str = "\
# Admission plugins

The admission plugins of kube-apiserver 1.36, in the order in which they run: first all plugins of the mutating phase, then
all plugins of the validating phase. Names, order and defaults are upstream's.

- [`--enable-admission-plugins`](flags-api.md#--enable-admission-plugins) and
  [`--disable-admission-plugins`](flags-api.md#--disable-admission-plugins) change the default set. A name that is unknown, or
  that is in both lists, is rejected.
- [`--admission-control-config-file`](flags-api.md#--admission-control-config-file) configures plugins.
- At start the server logs the loaded plugins of each phase.

";

pub(super) fn page(facts: &Facts) -> Page {
    let rows = facts.admission_plugins.iter().map(|plugin| {
        let default = if plugin.on_by_default { "on" } else { "off" };
        [code(&plugin.name), default.to_owned(), phases(plugin).to_owned(), sentence(&plugin.description)]
    });
    let rows = table(["Plugin", "Default", "Phases", "Description"], rows);
    Page::new("admission-plugins.md", format!("{INTRODUCTION}{rows}"))
}

fn phases(plugin: &AdmissionPlugin) -> &'static str {
    match (plugin.mutates, plugin.validates) {
        (true, true) => "mutating, validating",
        (true, false) => "mutating",
        (false, true) => "validating",
        (false, false) => "",
    }
}
