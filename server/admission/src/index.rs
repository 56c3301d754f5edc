//! Index of plugins by resource, so that a request that no plugin handles costs one lookup.
//!
//! The index does not depend on the set of plugins.

use std::collections::HashMap;
use std::sync::Arc;

use portico_registry::{Attributes, Operation};

use crate::plugin::{ANY, Plugin};

/// Plugins by the resources that they handle, in order.
#[derive(Default)]
pub(crate) struct PluginIndex {
    by_resource: HashMap<&'static str, Vec<Interest>>,
    /// Plugins that handle every resource, for resources that no other plugin names.
    any_resource: Vec<Interest>,
}

/// Requests of one resource that a plugin handles.
#[derive(Clone)]
struct Interest {
    group: &'static str,
    subresource: &'static str,
    operations: &'static [Operation],
    /// Upstream's name of the plugin.
    name: &'static str,
    plugin: Arc<dyn Plugin>,
}

/// Upstream's name of a plugin, and the plugin.
pub(crate) type NamedPlugin = (&'static str, Arc<dyn Plugin>);

impl Interest {
    fn matches(&self, attributes: &Attributes<'_>) -> bool {
        self.operations.contains(&attributes.operation)
            && (self.group == attributes.served_resource.resource.group || self.group == ANY)
            && (self.subresource == attributes.subresource() || self.subresource == ANY)
    }
}

impl PluginIndex {
    /// Creates an index of plugins, which run in the given order.
    pub(crate) fn new(plugins: &[NamedPlugin]) -> Self {
        let targets = || plugins.iter().flat_map(|(_, plugin)| plugin.targets());
        let named_resources = targets().map(|(_, resource, _)| *resource).filter(|resource| *resource != ANY);
        let by_resource =
            named_resources.map(|resource| (resource, interests_in(plugins, resource))).collect();
        Self { by_resource, any_resource: interests_in(plugins, ANY) }
    }

    /// Returns the plugins that handle a request, with their names.
    pub(crate) fn matching<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
    ) -> impl Iterator<Item = (&'static str, &'a dyn Plugin)> {
        let resource = attributes.served_resource.resource.resource.as_str();
        let interests = self.by_resource.get(resource).unwrap_or(&self.any_resource);
        let matching = interests.iter().filter(|interest| interest.matches(attributes));
        matching.map(|interest| (interest.name, &*interest.plugin))
    }

    /// True if any plugin handles a request.
    pub(crate) fn has_matching(&self, attributes: &Attributes<'_>) -> bool {
        self.matching(attributes).next().is_some()
    }
}

/// Returns the interests of the plugins in a resource.
fn interests_in(plugins: &[NamedPlugin], resource: &str) -> Vec<Interest> {
    let interests = |(name, plugin): &NamedPlugin| {
        let (name, operations, plugin) = (*name, plugin.operations(), Arc::clone(plugin));
        let targets =
            plugin.targets().iter().filter(move |(_, target, _)| *target == resource || *target == ANY);
        targets.map(move |(group, _, subresource)| Interest {
            group,
            subresource,
            operations,
            name,
            plugin: Arc::clone(&plugin),
        })
    };
    plugins.iter().flat_map(interests).collect()
}
