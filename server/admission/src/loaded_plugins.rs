//! Instances of the enabled plugins, in upstream's order.

use std::sync::Arc;

use portico_kit::metrics::Registry;

use crate::index::PluginIndex;
use crate::plugin::Plugin;
use crate::plugins::{PluginOrigin, Row};
use crate::settings::AdmissionSettings;

/// Enabled plugins. Rows whose logic is in the chain or the registry have no instance.
pub(crate) struct LoadedPlugins(Vec<(&'static Row, Option<Arc<dyn Plugin>>)>);

impl LoadedPlugins {
    /// Creates the enabled plugins.
    pub(crate) fn new(settings: &AdmissionSettings, metrics: &Registry) -> Self {
        let load = |row: &'static Row| match row.origin {
            PluginOrigin::Module(constructor) => (row, Some(constructor(settings))),
            PluginOrigin::ModuleWithMetrics(constructor) => (row, Some(constructor(settings, metrics))),
            PluginOrigin::InChain | PluginOrigin::InRegistry | PluginOrigin::Inert => (row, None),
        };
        Self(settings.plugins.rows().map(load).collect())
    }

    /// True if the named plugin is enabled.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(row, _)| row.name == name)
    }

    /// Returns an index of the plugins whose rows match a predicate.
    pub(crate) fn index(&self, is_in: impl Fn(&Row) -> bool) -> PluginIndex {
        let selected = self.0.iter().filter(|(row, _)| is_in(row));
        let plugins: Vec<_> =
            selected.filter_map(|(row, plugin)| Some((row.name, plugin.clone()?))).collect();
        PluginIndex::new(&plugins)
    }

    /// Logs the names of the loaded plugins (upstream's `NewFromPlugins`).
    pub(crate) fn log(&self) {
        for phase in ["mutating", "validating"] {
            let is_in =
                |row: &&Row| if phase == "mutating" { row.phases.mutates } else { row.phases.validates };
            let rows = self.0.iter().map(|(row, _)| *row).filter(is_in);
            let names: Vec<_> = rows.map(|row| row.name).collect();
            if !names.is_empty() {
                let (count, names) = (names.len(), names.join(","));
                tracing::info!(
                    "Loaded {count} {phase} admission controller(s) successfully in the following order: {names}."
                );
            }
        }
    }
}
