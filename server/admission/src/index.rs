//! Index of plugins by resource, so that a request that no plugin handles costs one lookup.
//!
//! The index does not depend on the set of plugins.

use std::collections::HashMap;
use std::sync::Arc;

use portico_registry::{Attributes, Operation};

use crate::plugin::{ANY, Plugin};

/// Plugins by the resources that they handle, in order.
#[derive(Default)]
pub(crate) struct Index {
    by_resource: HashMap<&'static str, Vec<Interest>>,
    /// Plugins that handle every resource, for resources that no other plugin names.
    others: Vec<Interest>,
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
pub(crate) type Named = (&'static str, Arc<dyn Plugin>);

impl Interest {
    fn is_in(&self, attributes: &Attributes<'_>) -> bool {
        self.operations.contains(&attributes.operation)
            && (self.group == attributes.served.resource.group || self.group == ANY)
            && (self.subresource == attributes.subresource() || self.subresource == ANY)
    }
}

impl Index {
    /// Creates an index of plugins, which run in the given order.
    pub(crate) fn new(plugins: &[Named]) -> Self {
        let targets = || plugins.iter().flat_map(|(_, plugin)| plugin.targets());
        let named = targets().map(|(_, resource, _)| *resource).filter(|resource| *resource != ANY);
        let by_resource = named.map(|resource| (resource, of(plugins, resource))).collect();
        Self { by_resource, others: of(plugins, ANY) }
    }

    /// Returns the plugins that handle a request, with their names.
    pub(crate) fn concerned<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
    ) -> impl Iterator<Item = (&'static str, &'a dyn Plugin)> {
        let resource = attributes.served.resource.resource.as_str();
        let interests = self.by_resource.get(resource).unwrap_or(&self.others);
        let concerned = interests.iter().filter(|interest| interest.is_in(attributes));
        concerned.map(|interest| (interest.name, &*interest.plugin))
    }

    /// True if any plugin handles a request.
    pub(crate) fn concerns(&self, attributes: &Attributes<'_>) -> bool {
        self.concerned(attributes).next().is_some()
    }
}

/// Returns the interests of the plugins in a resource.
fn of(plugins: &[Named], resource: &str) -> Vec<Interest> {
    let interests = |(name, plugin): &Named| {
        let (name, operations, plugin) = (*name, plugin.operations(), Arc::clone(plugin));
        let targets = plugin.targets().iter().filter(move |(_, of, _)| *of == resource || *of == ANY);
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
